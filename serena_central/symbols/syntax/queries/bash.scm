(function_definition name: (word) @name) @function
(declaration_command (variable_assignment name: (variable_name) @name)) @variable
(variable_assignment name: (variable_name) @name) @variable
