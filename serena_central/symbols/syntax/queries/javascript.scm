; Ranges include `export` and decorators, as TypeScript's own server draws them; a variable's is its declarator.
(export_statement declaration: (function_declaration name: (identifier) @name)) @function
(export_statement declaration: (generator_function_declaration name: (identifier) @name)) @function
(export_statement declaration: (class_declaration name: (identifier) @name)) @class
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(class_declaration name: (identifier) @name) @class
((method_definition ["get" "set"] name: [(property_identifier) (private_property_identifier)] @name) @property)
((method_definition name: (property_identifier) @name) @constructor (#eq? @name "constructor"))
(method_definition name: [(property_identifier) (private_property_identifier)] @name) @function
(field_definition property: [(property_identifier) (private_property_identifier)] @name) @property
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(variable_declarator name: (identifier) @name) @variable
[(arrow_function) (function_expression) (generator_function) (class_static_block)] @scope
