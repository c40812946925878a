; Ranges include decorators, as ty draws them.
((decorated_definition definition: (function_definition name: (identifier) @name)) @constructor (#eq? @name "__init__"))
((function_definition name: (identifier) @name) @constructor (#eq? @name "__init__"))
(decorated_definition definition: (function_definition name: (identifier) @name)) @function
(function_definition name: (identifier) @name) @function
(decorated_definition definition: (class_definition name: (identifier) @name)) @class
(class_definition name: (identifier) @name) @class
((assignment left: (identifier) @name) @constant (#match? @name "^_*[A-Z][A-Z0-9_]*$"))
(assignment left: (identifier) @name) @variable
(assignment left: (pattern_list (identifier) @name)) @variable
(type_alias_statement left: (type (identifier) @name)) @variable
(lambda) @scope
