; Kinds are those of the values, as Tombi tells them. Items of arrays have no names: what is in them is not told.
(table . "[" . [(bare_key) (quoted_key) (dotted_key)] @name) @object
(table_array_element . "[[" . [(bare_key) (quoted_key) (dotted_key)] @name) @object
(pair . [(bare_key) (quoted_key) (dotted_key)] @name "=" (string)) @string
(pair . [(bare_key) (quoted_key) (dotted_key)] @name "=" [(integer) (float)]) @number
(pair . [(bare_key) (quoted_key) (dotted_key)] @name "=" (boolean)) @boolean
(pair . [(bare_key) (quoted_key) (dotted_key)] @name "=" (array)) @array
(pair . [(bare_key) (quoted_key) (dotted_key)] @name "=" (inline_table)) @object
(pair . [(bare_key) (quoted_key) (dotted_key)] @name) @string
(array) @hidden
