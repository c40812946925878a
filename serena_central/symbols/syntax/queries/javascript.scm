; Ranges include `export` and decorators, as TypeScript's own server draws them; a variable's is its declarator.
(export_statement declaration: (function_declaration name: (identifier) @name)) @function
(export_statement declaration: (generator_function_declaration name: (identifier) @name)) @function
(export_statement declaration: (class_declaration name: (identifier) @name)) @class
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(class_declaration name: (identifier) @name) @class
((method_definition ["get" "set"] name: (_) @name) @property)
((method_definition name: (property_identifier) @name) @constructor (#eq? @name "constructor"))
(method_definition name: (_) @name) @method
(field_definition property: (_) @name) @property
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
[(program (comment) @documented) (statement_block (comment) @documented) (class_body (comment) @documented)]
