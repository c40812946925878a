(namespace_definition name: (namespace_name) @name) @namespace
(class_declaration name: (name) @name) @class
(interface_declaration name: (name) @name) @interface
(trait_declaration name: (name) @name) @class
(enum_declaration name: (name) @name) @enum
(enum_case name: (name) @name) @enum_member
(function_definition name: (name) @name) @function
((method_declaration name: (name) @name) @constructor (#eq? @name "__construct"))
(method_declaration name: (name) @name) @method
(property_declaration (property_element name: (variable_name) @name)) @property
(const_element . (name) @name) @constant
(expression_statement (assignment_expression left: (variable_name) @name)) @variable
[(anonymous_function) (arrow_function)] @scope
