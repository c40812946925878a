(function_definition declarator: (function_declarator declarator: (identifier) @name)) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @function
(function_definition declarator: (pointer_declarator declarator: (pointer_declarator
  declarator: (function_declarator declarator: (identifier) @name)))) @function
(declaration declarator: (function_declarator declarator: (identifier) @name)) @function
(declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @function
(struct_specifier name: (type_identifier) @name body: (_)) @struct
(union_specifier name: (type_identifier) @name body: (_)) @class
(translation_unit (struct_specifier name: (type_identifier) @name !body) @struct)
(preproc_ifdef (struct_specifier name: (type_identifier) @name !body) @struct)
(preproc_if (struct_specifier name: (type_identifier) @name !body) @struct)
(preproc_else (struct_specifier name: (type_identifier) @name !body) @struct)
(enum_specifier name: (type_identifier) @name body: (_)) @enum
((struct_specifier "struct" @name !name) @struct (#set! name "(anonymous struct)"))
((union_specifier "union" @name !name) @class (#set! name "(anonymous union)"))
((enum_specifier "enum" @name !name) @enum (#set! name "(anonymous enum)"))
(enumerator name: (identifier) @name) @enum_member
(type_definition declarator: (type_identifier) @name) @class
(type_definition declarator: (pointer_declarator declarator: (type_identifier) @name)) @class
(type_definition declarator: (function_declarator declarator: (parenthesized_declarator
  (pointer_declarator declarator: (type_identifier) @name)))) @class
; Of a header that nothing but its member functions tells from one of C.
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @method
(field_declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (field_identifier) @name))) @method
(field_declaration declarator: (field_identifier) @name) @field
(field_declaration declarator: (_ (field_identifier) @name)) @field
(field_declaration declarator: (_ (_ (field_identifier) @name))) @field
(field_declaration declarator: (function_declarator declarator: (parenthesized_declarator
  (pointer_declarator declarator: (field_identifier) @name)))) @field
(field_declaration declarator: (pointer_declarator declarator: (function_declarator
  declarator: (parenthesized_declarator (pointer_declarator declarator: (field_identifier) @name))))) @field
(type_definition type: (struct_specifier name: (type_identifier) @name !body) @struct (#set! once "yes"))
(declaration declarator: (identifier) @name) @variable
(declaration declarator: (init_declarator declarator: (identifier) @name)) @variable
(declaration declarator: (init_declarator declarator: (_ declarator: (identifier) @name))) @variable
(declaration declarator: (init_declarator declarator: (_ declarator: (_ declarator: (identifier) @name)))) @variable
(declaration declarator: [(pointer_declarator (identifier) @name) (array_declarator declarator: (identifier) @name)]) @variable
(declaration declarator: (pointer_declarator
  [(pointer_declarator (identifier) @name) (array_declarator declarator: (identifier) @name)])) @variable
; What is defined in a function's body is its own.
(function_definition declarator: (function_declarator) body: (_) @hidden)
(function_definition declarator: (_ (function_declarator)) body: (_) @hidden)
(function_definition declarator: (_ (_ (function_declarator))) body: (_) @hidden)
