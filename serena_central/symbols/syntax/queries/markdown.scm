; A section begins with its heading, and ends before the next one of its level or above. What is quoted or in a list
; is none.
((atx_heading (atx_h1_marker) heading_content: (inline) @name) @string (#set! level "1"))
((atx_heading (atx_h2_marker) heading_content: (inline) @name) @string (#set! level "2"))
((atx_heading (atx_h3_marker) heading_content: (inline) @name) @string (#set! level "3"))
((atx_heading (atx_h4_marker) heading_content: (inline) @name) @string (#set! level "4"))
((atx_heading (atx_h5_marker) heading_content: (inline) @name) @string (#set! level "5"))
((atx_heading (atx_h6_marker) heading_content: (inline) @name) @string (#set! level "6"))
((setext_heading heading_content: (paragraph (inline) @name) (setext_h1_underline)) @string (#set! level "1"))
((setext_heading heading_content: (paragraph (inline) @name) (setext_h2_underline)) @string (#set! level "2"))
[(block_quote) (list)] @hidden
