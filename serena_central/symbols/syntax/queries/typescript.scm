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
(enum_assignment name: (_) @name) @enum_member
(enum_body name: (_) @name @enum_member)
(type_alias_declaration name: (type_identifier) @name) @type
(internal_module name: (_) @name) @namespace
(module name: (_) @name) @namespace
((method_definition ["get" "set"] name: (_) @name) @property)
((method_definition name: (property_identifier) @name) @constructor (#eq? @name "constructor"))
(method_definition name: (_) @name) @method
(abstract_method_signature name: (_) @name) @method
((method_signature name: (property_identifier) @name) @constructor (#eq? @name "constructor"))
(class_body (method_signature name: (_) @name) @method)
(interface_body (method_signature name: (_) @name) @method)
(interface_body (property_signature name: (_) @name) @property)
((interface_body (call_signature) @name @method) (#set! name "()"))
((interface_body (construct_signature) @name @method) (#set! name "new()"))
((interface_body (index_signature) @name @property) (#set! name "[]"))
((class_body (index_signature) @name @property) (#set! name "[]"))
((required_parameter [(accessibility_modifier) "readonly"] pattern: (identifier) @name) @property (#set! outside "yes"))
((optional_parameter [(accessibility_modifier) "readonly"] pattern: (identifier) @name) @property (#set! outside "yes"))
(ambient_declaration "global" @name) @namespace
(public_field_definition name: (_) @name) @property
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(variable_declarator name: (identifier) @name) @variable
(pair key: (_) @name) @property
(object (shorthand_property_identifier) @name @property)
(arguments (function_expression name: (identifier) @name) @function)
(return_statement (function_expression name: (identifier) @name) @function)
(parenthesized_expression (function_expression name: (identifier) @name) @function)
(assignment_expression left: (member_expression
    object: (member_expression object: (identifier) @receiver property: (property_identifier) @_of)
    property: (_) @name)
  right: [(arrow_function) (function_expression !name)] (#eq? @_of "prototype")) @function
(assignment_expression left: (member_expression
    object: (member_expression object: (identifier) @receiver property: (property_identifier) @_of))
  right: (function_expression name: (identifier) @name) @function (#eq? @_of "prototype"))
(assignment_expression right: (function_expression name: (identifier) @name) @function)
(assignment_expression left: (member_expression property: (_) @name)
  right: [(arrow_function) (function_expression !name)]) @function
(augmented_assignment_expression left: (member_expression property: (_) @name)
  right: [(arrow_function) (function_expression !name)]) @function
((export_statement "default" @name value: (function_expression !name)) @function (#set! name "default"))
(assignment_expression left: (identifier) @name right: [(arrow_function) (function_expression !name)]) @function
(for_in_statement kind: _ left: (identifier) @name) @variable
(variable_declarator name: [
  (object_pattern [
    (shorthand_property_identifier_pattern) @name
    (pair_pattern value: (identifier) @name)
    (object_assignment_pattern left: (shorthand_property_identifier_pattern) @name)
    (rest_pattern (identifier) @name)])
  (array_pattern (identifier) @name)]) @variable
[(arrow_function) (function_expression) (generator_function) (class_static_block)] @scope
(decorator) @leading
