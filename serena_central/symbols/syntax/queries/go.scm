; A method belongs to its receiver's type.
(function_declaration name: (identifier) @name) @function
(method_declaration receiver: (parameter_list (parameter_declaration type: (_) @receiver))
  name: (field_identifier) @name) @method
(type_spec name: (type_identifier) @name type: (struct_type)) @struct
(type_spec name: (type_identifier) @name type: (interface_type)) @interface
(type_spec name: (type_identifier) @name) @class
(type_alias name: (type_identifier) @name) @class
(field_declaration name: (field_identifier) @name) @field
(method_elem name: (field_identifier) @name) @method
(const_spec (identifier) @name) @constant
(var_spec (identifier) @name) @variable
(func_literal) @scope
