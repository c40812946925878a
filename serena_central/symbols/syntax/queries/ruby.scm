(module name: (_) @name) @module
(class name: (_) @name) @class
((method name: (_) @name) @constructor (#eq? @name "initialize"))
(method name: (_) @name) @function
(singleton_method name: (_) @name) @function
(assignment left: (constant) @name) @constant
[(block) (do_block) (lambda)] @scope
