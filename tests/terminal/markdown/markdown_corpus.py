"""Documents for every construct of CommonMark, and rich's two additions, in words of our own."""

# ruff: noqa: E501, RUF001 - a document is easier to read in one line, and full-width letters are meant
from __future__ import annotations

DOCUMENTS = {
    "tabs indent and stay inside": "\tcode\tand more\n\n- item\n\n\tits second paragraph\n\n>\tquoted\n\n-\t\tcode in an item\n",
    "escapes": "\\*no emphasis\\* \\# no heading \\[no link](/x) \\` \\\\ a\\b\n\n\\- no item\n\\1. nor this\n1\\. nor that\n",
    "entities": "&amp; &copy; &#65; &#x42; &nbsp;x &unknown; &#0; &lt;b&gt; `&amp;`\n\n&#42;no emphasis&#42;\n",
    "structure goes before emphasis": "- `one\n- two`\n\n*a\n\nb*\n",
    "thematic breaks": "***\n---\n___\n\n - - -\n_ _ _ _ _\ntext\n***\n+++\n--\n    ***\n\ntext\n    ***\n",
    "a break instead of an item": "- a\n***\n- b\n\n* x\n* * *\n* y\n- z\n- - -\n",
    "headings": "# one\n## two ##\n### three # more\n####### seven\n#none\n#\n###### six\n    # code\n\n## *e* `c` #\ntext\n# h\ntext\n",
    "underlined headings": "First\n=====\n\nSecond *x*\n---\n\nover two\nlines\n==\n\n    code\n---\n> quoted\n---\n- item\n---\n\\> a\n----\n",
    "indented code": "    one\n      two\n\n\n    three\ntext\n    lazy\n\n    last\n\n",
    "fences": "```\nplain\n```\ntext\n~~~~ python more\ndef f(): ...\n~~~\n~~~~\n```js\nlet x = `y`\n````\n  ```\n  a\n b\n```\nend\n",
    "a fence without code": "```\n```\n\n```\n\n\n```\ntext\n",
    "a fence that never ends": "text\n```python\ndef f():\n    return 1\n\n\n",
    "a fence that ends with its item": "- ```\n  code\nno code\n\n> ```\n> quoted\nno code\n",
    "backticks that are no fence": "``` a`b\ntext ```x```\n",
    "an unknown language": "```nosuchlanguage\nfoo(bar)\n```\n",
    "html of seven kinds": "<pre>\nx\n\ny</pre>\ntext\n\n<!-- a\n\nb -->\n\n<?php\n\n?>\n<!DOCTYPE x>\n\n<![CDATA[\n\n]]>\n"
    "<div>\n*a*\n\n*b*\n</div>\n\n<x-y a='b'>\n*c*\n\ntext\n<x-y>\n",
    "inline html": "a <b>bold</b> <br/> <kbd>Ctrl</kbd>+<kbd>C</kbd> <!-- no --> </x> <33> <a href='x'>y</a>\n",
    "definitions": "[one]: /first 'title'\n[two]:\n  <http://two.example/a b>\n  \"over\nlines\"\n\n[one] [TWO][two] [text][One] [two][]\n"
    "[three]: /not\n\n[one]: /ignored\n",
    "a definition whose title never ends": '[one]: /url\n"title\nand so on\n\n[one]\n',
    "a definition with a title on the next line": "text\n\n[one]: /url\n'title'\nmore\n\n[one]\n",
    "definitions inside blocks": "> [one]: /url\n\n- [two]: /url\n\n[one] [two]\n",
    "paragraphs": "a\n  b\n      c\n\n\n\nd  \ne\\\nf\n\n   g\n",
    "block quotes": "> # h\n> text\nlazy\n>\n> > deep\n> lazy\nlazier\n\n>no space\n   > three\n    > code\n\n> - a\n> - b\n> ---\ntext\n> > ```\n> > x\n",
    "lazy lines end at structure": "> a\n---\n\n> - a\n- b\n\n>     code\n    more\n\n> ```\nno\n```\n",
    "bullets": "- a\n-   b\n-\n  c\n-\n\n  d\n* e\n+ f\n\n- g\n\n\n- h\n   - i\n    - j\n - k\n\n      l\n",
    "numbers": "1. a\n2. b\n10. c\n\n3) d\n0) e\n\n123456789. f\n1234567890. no\n-1. no\ntext\n1. yes\n\ntext\n2. no\n",
    "loose and tight": "- a\n- b\n\n- c\n\n\n1. x\n\n   y\n2. z\n\n- a\n  > q\n  ```\n  c\n  ```\n- d\n",
    "nested lists": "- a\n  - b\n    1. c\n       - d\n\n         e\n  - f\n\n        code\n- g\n\n  - h\n* i\n  1) j\n",
    "items that begin with blocks": "- # h\n- > q\n- ```\n  c\n  ```\n-     code\n- - - x\n1. - 2. y\n- \n- ---\n",
    "code spans": "`a` ``b ` c`` ` `` ` `  x  ` `a\nb` `no ``span` `\\` *a`*`\n",
    "emphasis": "*a* _b_ **c** __d__ ***e*** *f **g** h* **i *j* k** snake_case_word 5*6*7 ** no ** *(x)* _a_b_ **l*m\n*two\nlines* ~~s~~ ~t~\n",
    "links": "[a](/u) [b](</u v> 'title') [c]() [*d*](x) [e] (no) [f](a\\)b) [g](\"t\") [h [i](j)](k) ![l](m 'n') [![o](p)](q) [`r](s)`\n",
    "autolinks": "<http://a.example/b?c=d> <me@b.example> <made-up:x> <not a link> http://bare.example <ftp://x>\n",
    "images": "![alone](http://a.example/b.png)\n\ntext ![in *it*](c.png) text\n\n- ![d](e)\n- f\n\n# ![g](h) i\n\n| ![j](k) | l |\n|--|--|\n| m | ![](n/o.png) |\n",
    "images among words": "[u]: /v\n\nbefore ![a city](http://a.example/b.png) and after it, past the end of a line that is long enough\n\n- an item ![*of* `c`](d)\n  > quoted ![](e/f.png) end\n\n## A heading ![&amp; ![g](h) [i](j)](k)\n\n[![badge](l.svg)](http://m) [![n](n)](n) [![](o)](p) ![]() x ![q\nr](s) ![t][u]\n",
    "addresses as texts": "<http://a.example/b?c=d&e> and <me@b.example> [http://c](http://c) [`d`](d) [**e**](e 'f') [MAILTO:x@y](mailto:x@y) [x@y](mailto:x@y) [f\ng](fg) [http://h](http://h/) []() [](i) <http://j/ä>\n\n- <http://k.example/long/enough/to/be/folded/in/a/narrow/terminal>\n\n| <http://l> | [m](m) |\n|--|--|\n| ![n](n) | **<o@p.q>** |\n",
    "long words in a table": "| heading"
    + "heading" * 4
    + " | b |\n|--|--:|\n| "
    + "word" * 25
    + " | and "
    + "words" * 20
    + " |\n| 日本語のテキストはどこでも折り返すことができます | `"
    + "code" * 10
    + "` |\n| x !["
    + "alt" * 20
    + "](http://a.example/b.png) | y |\n",
    "breaks": "a  \nb\\\nc   \n  d\ne\\\\\nf  \n\n# g  \nh\\\n",
    "links that are refused": "[a](javascript:x) [b](data:text/html,x) <javascript:x> [c](file:///x) ![d](data:image/png;base64,AA)\n",
    "tables": "before\n\n| a | b | c |\n|:--|:-:|--:|\n| 1 | **2** |\n| x | `y|z` | \\| | more |\nlazy\n\na | b\n-|-\n1 | 2\n> q\n\n| no |\n\n|a|\n|-|\n",
    "a table within a paragraph": "text\na | b\n--|--\nc | d\n# h\n",
    "a table in a list and a quote": "- | a | b |\n  |---|---|\n  | 1 | 2 |\n- x\n\n> | a |\n> |---|\n> | b |\n",
    "wide characters": "# 日本語の見出し\n\n日本語のテキストはどこでも折り返すことができます。日本語のテキストはどこでも折り返すことができます。\n\n- 한국어 항목\n\n| 名前 | 値 |\n|--|--|\n| 甲 | 乙 |\n",
    "combining characters and emoji": "e\u0301a\u0308 no\u0308el z\u0335\u0321\u031b 👍🏽 ❤\ufe0f 👩\u200d👩\u200d👧 ½ ｗｉｄｅ\n\n- 👩\u200d🚀 in an item that is long enough to be wrapped once or twice\n",
    "long words": f"# {'heading' * 15}\n\n{'word' * 60}\n\n- {'item' * 40}\n\n```\n{'code' * 50}\n```\n",
    "markup of rich": "[red]x[/red] [/foo] [bold] :smile: [link=http://a]b[/link]\n\n```\n[/foo]\n```\n",
    "nothing": "",
    "only blanks": "\n  \n\t\n",
    "no end of line": "# a\ntext",
}
