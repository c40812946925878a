; Ranges include attributes and documentation, as rust-analyzer draws them.
; An implementation is named as rust-analyzer does: impl Trait for Type.
(function_item name: (identifier) @name parameters: (parameters (self_parameter))) @function
((function_item name: (identifier) @name) @function (#set! static "yes"))
(function_signature_item name: (identifier) @name parameters: (parameters (self_parameter))) @function
((function_signature_item name: (identifier) @name) @function (#set! static "yes"))
(struct_item name: (type_identifier) @name) @struct
(union_item name: (type_identifier) @name) @struct
(enum_item name: (type_identifier) @name) @enum
(enum_variant name: (identifier) @name) @enum_member
(trait_item name: (type_identifier) @name) @interface
(impl_item "impl" @from type_parameters: (_)? @without type: (_) @name) @object
(mod_item name: (identifier) @name) @module
(field_declaration name: (field_identifier) @name) @field
(const_item name: (identifier) @name) @constant
(static_item name: (identifier) @name) @constant
(type_item name: (type_identifier) @name) @type_parameter
(associated_type name: (type_identifier) @name) @type_parameter
(macro_definition name: (identifier) @name) @function
(closure_expression) @scope
(attribute_item) @leading
(line_comment (outer_doc_comment_marker)) @leading
(block_comment (outer_doc_comment_marker)) @leading
