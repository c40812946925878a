(function_declaration name: (_) @name) @function
(variable_declaration (assignment_statement (variable_list name: (identifier) @name) (expression_list value: (function_definition)))) @function
(variable_declaration (assignment_statement (variable_list name: (identifier) @name))) @variable
(variable_declaration (variable_list name: (identifier) @name)) @variable
(chunk (assignment_statement (variable_list name: (_) @name)) @variable)
(function_definition) @scope
