"""The look of the HTML report: light, dark and printed; its colours are safe for colour-blind readers."""

# Shades of each sign; text on them keeps a contrast of 4.5 to 1 or better.
DEPTHS = 10
FOR, AGAINST = (0, 114, 178), (213, 94, 0)
LIGHT, DARK = (255, 255, 255), (20, 23, 28)
# In dark mode shades stop short of their full depth, so that white text can be read on them.
DARK_DEPTH = 0.8


def background(sign: int, depth: int, dark: bool) -> tuple[int, int, int]:
    """Red, green and blue, 0 to 255, behind a number of this sign and depth."""
    part = depth / DEPTHS * (DARK_DEPTH if dark else 1)
    ends = zip(DARK if dark else LIGHT, FOR if sign > 0 else AGAINST, strict=True)
    red, green, blue = (round(paper + part * (color - paper)) for paper, color in ends)
    return red, green, blue


def text_color(sign: int, depth: int, dark: bool) -> tuple[int, int, int]:
    """The colour of text on it."""
    return (255, 255, 255) if dark or (sign > 0 and depth == DEPTHS) else (0, 0, 0)


def shade_rules(dark: bool, scope: str = "") -> str:
    """CSS of the shades p1 to p10 and n1 to n10, with g and t before the name for backgrounds and text in SVG.

    scope: a selector that the rules hold below.
    """
    within = f"{scope} " if scope else ""
    rules = []
    for letter, sign in (("p", 1), ("n", -1)):
        for depth in range(1, DEPTHS + 1):
            back, front = (
                "rgb({},{},{})".format(*color)
                for color in (background(sign, depth, dark), text_color(sign, depth, dark))
            )
            name = f"{letter}{depth}"
            rules.append(f"{within}.{name}{{background:{back};color:{front}}}{within}.g{name}{{fill:{back}}}")
            rules.append(f"{within}svg .t{name}{{fill:{front}}}")
    return "\n".join(rules)


_BASE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--soft:#59616b;--rule:#d9dde3;--for:#0072b2;--against:#c25400;
--alert:#fdf1e7}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:1.5rem 1rem 4rem;background:var(--paper);color:var(--ink);
font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
h1{font-size:1.6rem;line-height:1.2;margin:0 0 .5rem}
h2{font-size:1.25rem;margin:0 0 .5rem;overflow-wrap:anywhere}
h3{font-size:.95rem;margin:1.4rem 0 .4rem}
section{border-top:1px solid var(--rule);margin-top:2.5rem;padding-top:1.5rem}
a{color:var(--for)}
.soft,figcaption,caption{color:var(--soft);font-size:.875rem}
caption{text-align:left;padding-bottom:.3rem}
.unread{color:var(--soft);text-decoration:line-through}
.side{color:var(--soft);font-size:.8rem;margin:.7rem 0 0}
.words{margin:.15rem 0;font-size:1.15rem;line-height:2}
.w{padding:.12em .3em;border-radius:.25em;overflow-wrap:anywhere;-webkit-box-decoration-break:clone;
box-decoration-break:clone}
.against{text-decoration:underline dotted;text-underline-offset:.2em}
.base{margin:.2rem 0}
.scale{margin:.4rem 0;color:var(--soft);font-size:.8rem;line-height:2}
.note{border-left:4px solid var(--against);background:var(--alert);padding:.5rem .9rem;margin:.6rem 0;
border-radius:.25em;overflow-wrap:anywhere}
.note p{margin:.2rem 0}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.875rem}
th,td{padding:.2rem .55rem;text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
th{font-weight:600}
thead th{border-bottom:1px solid var(--rule)}
.name{text-align:left;max-width:16rem;overflow:hidden;text-overflow:ellipsis}
.wide{text-align:left}
.heat th,.heat td{padding:.1rem .25rem;font-size:.7rem;font-weight:400}
.heat th{max-width:7rem;overflow:hidden;text-overflow:ellipsis}
.heat td{min-width:2.6rem;border:1px solid var(--paper)}
.heat .first{border-left:2px solid var(--ink)}
.heat .top>*{border-top:2px solid var(--ink)}
details{margin-top:.9rem}
summary{cursor:pointer;font-weight:600;font-size:.95rem}
summary:focus-visible,a:focus-visible,.scroll:focus-visible{outline:2px solid var(--for);outline-offset:2px}
figure{margin:.5rem 0}
svg{display:block;max-width:none}
svg text{fill:var(--ink);font:13px "DejaVu Sans Mono",Menlo,Consolas,monospace;unicode-bidi:isolate}
svg .row{fill:var(--soft);font-size:11px}
.arc{fill:none;opacity:.85}
.synergy{stroke:var(--for)}
.antagonism{stroke:var(--against);stroke-dasharray:7 4}
ol{padding-left:1.6rem}
li{overflow-wrap:anywhere}
.means td,.means th{vertical-align:middle}
.means .where{color:var(--soft);font-size:.75rem;font-weight:400;margin-left:.4em}
.means .shade{min-width:5rem;border:1px solid var(--paper)}
h2 .soft{font-weight:400}
nav .links{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;padding:0;margin:.8rem 0;list-style:none}
.bar .zero{stroke:var(--soft);stroke-width:1}
.bar .up{stroke:var(--for);stroke-width:1}
.bar .down{stroke:var(--against);stroke-width:1}
.bar .plain{fill:#98a1ad}
.bar .reach{stroke:var(--ink);stroke-width:1.2}
.bar .misfit{stroke:var(--ink);stroke-width:1;stroke-dasharray:2 2}
.facts{display:flex;flex-wrap:wrap;gap:.5rem 2.2rem;padding:0;margin:1rem 0;list-style:none}
.facts b{display:block;font-size:1.5rem;line-height:1.2}
.facts li{color:var(--soft);font-size:.85rem}
.facts b{color:var(--ink)}
meter{width:8rem;vertical-align:middle}
"""
_DARK = (
    ":root{--paper:#14171c;--ink:#e8eaed;--soft:#a3abb5;--rule:#363c45;--for:#5fb3e6;--against:#f08a3c;--alert:#33261b}"
)
_PRINT = """
body{max-width:none;padding:0;font-size:10pt}
section{break-before:page;border:0;margin:0;padding:0}
section:first-of-type{break-before:auto}
h2,h3,summary,.words{break-after:avoid}
tr,figure,li{break-inside:avoid}
.scroll{overflow:visible}
svg{max-width:100%;height:auto}
nav{display:none}
.heat th,.heat td{min-width:0;padding:.05rem .1rem;font-size:5.5pt}
.heat th{max-width:3rem}
details::details-content{content-visibility:visible;block-size:auto}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
"""
STYLE = (
    _BASE
    + shade_rules(dark=False)
    + f"\n@media screen and (prefers-color-scheme:dark){{\n{_DARK}\n{shade_rules(dark=True)}\n}}"
    + "\n@media (max-width:34rem){body{padding:1rem .75rem 3rem}h1{font-size:1.35rem}.words{font-size:1.05rem}"
    + "svg.bar{width:8rem}}"
    + f"\n@media print{{{_PRINT}}}\n"
)
