"""A hundred names that a user could give and that must come out as text."""

from __future__ import annotations

PAYLOADS = [
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=1</script>",
    "</style><script>window.hacked=1</script>",
    "</svg><script>window.hacked=1</script>",
    "</title><script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "'><img src=x onerror='window.hacked=1'>",
    "<svg onload=window.hacked=1>",
    "<iframe src=https://example.com></iframe>",
    "<link rel=stylesheet href=https://example.com/a.css>",
    '" onmouseover="window.hacked=1',
    "javascript:window.hacked=1",
    "<!-- a comment",
    "--> no comment",
    "]]> no data",
    "&lt;b&gt;&amp;&#60;b&#62;",
    "{{ 7 * 7 }}{% raw %}",
    "${7*7}#{7*7}`7`",
    r"$\alpha_{$ \frac",
    "_leading underscore",
    "quotes \" ' ` “ ” «»",
    "%s %(x)s %n {0} {x}",
    "ends in a backslash \\",
    "雪と花 Ωμέγα Ж ñ",
    "🦉 émojis 👩‍🔬",
]
TURNED = ["\u202eturned\u202c", "nul \x00 bell \x07", "line\nfeed", "alone \ud800", "tab\tbed"]
NAMES = [f"{prefix}{p}{suffix}" for p in PAYLOADS for prefix, suffix in
         (("", ""), ("a ", " b"), ("#", "#"), ("'", '"'))]  # fmt: skip
FOLDERS = [
    name.replace("/", "\u2215")
    for name in (*PAYLOADS[:6:2], PAYLOADS[7], PAYLOADS[10], *PAYLOADS[18:20])
]

assert len(NAMES) == 100
