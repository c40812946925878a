(function_definition name: (word) @name) @function
((declaration_command (variable_assignment name: (variable_name) @name)) @variable (#set! once "yes"))
((variable_assignment name: (variable_name) @name) @variable (#set! once "yes"))
; Where an option's value can't be told by the syntax, the language server does not guess which words are names.
((command name: (command_name) @_read argument: (word) @name) @variable
  (#eq? @_read "read") (#not-match? @variable "read .*[$]'") (#match? @name "^[A-Za-z_][A-Za-z0-9_]*$") (#set! once "yes"))
