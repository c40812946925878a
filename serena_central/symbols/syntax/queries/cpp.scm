; A definition outside of its class belongs to the class that is written before its name.
; In a body, what looks like the declaration of a function is a variable that is made with arguments.
(compound_statement (declaration declarator: (function_declarator declarator: (identifier) @name)) @variable)
(template_declaration (class_specifier name: [(type_identifier) (template_type)] @name body: (_))) @class
(template_declaration (struct_specifier name: [(type_identifier) (template_type)] @name body: (_))) @struct
(template_declaration (function_definition declarator: (function_declarator
  declarator: [(identifier) (field_identifier) (qualified_identifier) (operator_name)] @name))) @function
(template_declaration (function_definition declarator: (_ (function_declarator
  declarator: [(identifier) (field_identifier) (qualified_identifier) (operator_name)] @name)))) @function
(function_definition declarator: (function_declarator
  declarator: [(identifier) (field_identifier) (qualified_identifier) (destructor_name) (operator_name)] @name)) @function
(function_definition declarator: (_ (function_declarator
  declarator: [(identifier) (field_identifier) (qualified_identifier) (operator_name)] @name))) @function
(function_definition declarator: (operator_cast) @name) @function
(declaration declarator: (function_declarator declarator: [(identifier) (destructor_name) (operator_name)] @name)) @function
(declaration declarator: (_ (function_declarator declarator: [(identifier) (operator_name)] @name))) @function
(field_declaration declarator: (function_declarator declarator: [(field_identifier) (operator_name)] @name)) @function
(field_declaration declarator: (_ (function_declarator declarator: [(field_identifier) (operator_name)] @name))) @function
(class_specifier name: [(type_identifier) (template_type) (qualified_identifier)] @name body: (_)) @class
(struct_specifier name: [(type_identifier) (template_type) (qualified_identifier)] @name body: (_)) @struct
(union_specifier name: (type_identifier) @name body: (_)) @class
(enum_specifier name: (type_identifier) @name body: (_)) @enum
(enumerator name: (identifier) @name) @enum_member
(namespace_definition name: (namespace_identifier) @name) @namespace
(namespace_definition name: (nested_namespace_specifier (namespace_identifier) @name)) @namespace
(namespace_definition name: (nested_namespace_specifier
  (nested_namespace_specifier (namespace_identifier) @name))) @namespace
((namespace_definition "namespace" @name !name) @namespace (#set! name "(anonymous namespace)"))
((struct_specifier "struct" @name !name) @struct (#set! name "(anonymous struct)"))
((class_specifier "class" @name !name) @class (#set! name "(anonymous class)"))
((union_specifier "union" @name !name) @class (#set! name "(anonymous union)"))
((enum_specifier "enum" @name !name) @enum (#set! name "(anonymous enum)"))
(field_declaration type: (class_specifier name: (type_identifier) @name !body) !declarator) @class
(field_declaration type: (struct_specifier name: (type_identifier) @name !body) !declarator) @struct
(translation_unit (class_specifier name: (type_identifier) @name !body) @class)
(translation_unit (struct_specifier name: (type_identifier) @name !body) @struct)
(declaration_list (class_specifier name: (type_identifier) @name !body) @class)
(declaration_list (struct_specifier name: (type_identifier) @name !body) @struct)
(preproc_ifdef (class_specifier name: (type_identifier) @name !body) @class)
(preproc_ifdef (struct_specifier name: (type_identifier) @name !body) @struct)
(preproc_if (class_specifier name: (type_identifier) @name !body) @class)
(preproc_if (struct_specifier name: (type_identifier) @name !body) @struct)
(preproc_else (class_specifier name: (type_identifier) @name !body) @class)
(preproc_else (struct_specifier name: (type_identifier) @name !body) @struct)
(type_definition type: (struct_specifier name: (type_identifier) @name !body) @struct (#set! once "yes"))
(type_definition declarator: (primitive_type) @name) @class
(concept_definition name: (identifier) @name) @interface
(alias_declaration name: (type_identifier) @name) @class
(type_definition declarator: (type_identifier) @name) @class
(type_definition declarator: (pointer_declarator declarator: (type_identifier) @name)) @class
(type_definition declarator: (function_declarator declarator: (parenthesized_declarator
  (pointer_declarator declarator: (type_identifier) @name)))) @class
(type_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (parenthesized_declarator
  (pointer_declarator declarator: (type_identifier) @name))))) @class
(field_declaration (storage_class_specifier "static") declarator: (field_identifier) @name) @property
(field_declaration (storage_class_specifier "static") declarator: (_ (field_identifier) @name)) @property
(field_declaration (storage_class_specifier "static") declarator: (_ (_ (field_identifier) @name))) @property
(field_declaration declarator: (field_identifier) @name) @field
(field_declaration declarator: (_ (field_identifier) @name)) @field
(field_declaration declarator: (_ (_ (field_identifier) @name))) @field
(field_declaration declarator: (function_declarator declarator: (parenthesized_declarator
  (pointer_declarator declarator: (field_identifier) @name)))) @field
(field_declaration declarator: (pointer_declarator declarator: (function_declarator
  declarator: (parenthesized_declarator (pointer_declarator declarator: (field_identifier) @name))))) @field
(declaration declarator: [(identifier) (qualified_identifier)] @name) @variable
(declaration declarator: (init_declarator declarator: [(identifier) (qualified_identifier)] @name)) @variable
(declaration declarator: (init_declarator declarator: [(pointer_declarator [(identifier) (qualified_identifier)] @name)
  (reference_declarator [(identifier) (qualified_identifier)] @name) (array_declarator declarator: [(identifier) (qualified_identifier)] @name)])) @variable
(declaration declarator: [(pointer_declarator [(identifier) (qualified_identifier)] @name)
  (reference_declarator [(identifier) (qualified_identifier)] @name) (array_declarator declarator: [(identifier) (qualified_identifier)] @name)]) @variable
; What is defined in a function's body is its own. What looks like a function without parameters may be a class.
(function_definition declarator: (function_declarator) body: (_) @hidden)
(function_definition declarator: (_ (function_declarator)) body: (_) @hidden)
(function_definition declarator: (operator_cast) body: (_) @hidden)
(lambda_expression) @hidden
