(function_definition name: (word) @name) @function
((declaration_command (variable_assignment name: (variable_name) @name)) @variable (#set! once "yes"))
((variable_assignment name: (variable_name) @name) @variable (#set! once "yes"))
((command name: (command_name) @_read argument: (word) @name) @variable
  (#eq? @_read "read") (#match? @name "^[A-Za-z_][A-Za-z0-9_]*$") (#set! once "yes"))
