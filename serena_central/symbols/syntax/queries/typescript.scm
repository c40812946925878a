; Ranges include `export` and decorators, as TypeScript's own server draws them; a variable's is its declarator.
(export_statement declaration: (function_declaration name: (identifier) @name)) @function
(export_statement declaration: (generator_function_declaration name: (identifier) @name)) @function
(export_statement declaration: (class_declaration name: (type_identifier) @name)) @class
(export_statement declaration: (abstract_class_declaration name: (type_identifier) @name)) @class
(export_statement declaration: (interface_declaration name: (type_identifier) @name)) @interface
(export_statement declaration: (enum_declaration name: (identifier) @name)) @enum
(export_statement declaration: (type_alias_declaration name: (type_identifier) @name)) @type
(export_statement declaration: (internal_module name: (_) @name)) @namespace
(export_statement declaration: (function_signature name: (identifier) @name)) @function
(function_declaration name: (identifier) @name) @function
(function_signature name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(class_declaration name: (type_identifier) @name) @class
(abstract_class_declaration name: (type_identifier) @name) @class
(interface_declaration name: (type_identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(enum_assignment name: (property_identifier) @name) @enum_member
(enum_body name: (property_identifier) @name @enum_member)
(type_alias_declaration name: (type_identifier) @name) @type
(internal_module name: (_) @name) @namespace
(module name: (_) @name) @namespace
((method_definition ["get" "set"] name: [(property_identifier) (private_property_identifier)] @name) @property)
((method_definition name: (property_identifier) @name) @constructor (#eq? @name "constructor"))
(method_definition name: [(property_identifier) (private_property_identifier)] @name) @function
(abstract_method_signature name: (property_identifier) @name) @function
(class_body (method_signature name: (property_identifier) @name) @function)
(interface_body (method_signature name: (property_identifier) @name) @function)
(interface_body (property_signature name: (property_identifier) @name) @property)
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name) @property
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(variable_declarator name: (identifier) @name) @variable
[(arrow_function) (function_expression) (generator_function) (class_static_block)] @scope
(decorator) @leading
