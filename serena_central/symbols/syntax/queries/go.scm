; A method belongs to its receiver's type.
(function_declaration name: (identifier) @name) @function
(method_declaration receiver: (parameter_list (parameter_declaration type: (_) @receiver))
  name: (field_identifier) @name) @method
(type_spec name: (type_identifier) @name type: (struct_type)) @struct
(type_spec name: (type_identifier) @name type: (interface_type)) @interface
(type_spec name: (type_identifier) @name) @class
(type_alias name: (type_identifier) @name) @class
(type_spec type: (struct_type (field_declaration_list (field_declaration name: (field_identifier) @name) @field)))
(field_declaration type: (struct_type (field_declaration_list
  (field_declaration name: (field_identifier) @name) @field)))
(field_declaration !name type: (type_identifier) @name) @field
(field_declaration !name type: (qualified_type name: (type_identifier) @name)) @field
(field_declaration !name type: (generic_type type: (type_identifier) @name)) @field
(method_elem name: (field_identifier) @name) @method
(interface_type (type_elem) @name @field)
((const_spec (identifier) @name) @constant (#not-eq? @name "_"))
((var_spec (identifier) @name) @variable (#not-eq? @name "_"))
; gopls tells nothing of code and values.
(block) @hidden
(var_spec value: (_) @hidden)
(func_literal) @scope
