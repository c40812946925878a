(function_definition name: (word) @name) @function
(variable_assignment name: (variable_name) @name) @variable
