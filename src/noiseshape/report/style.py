"""The style sheet of reports and pictures: light, dark, narrow and printed.

Colours are those of Okabe and Ito, told apart with any colour vision; nothing is told by colour
alone.
"""

_LIGHT = """--ink:#1b1f24;--soft:#57606a;--page:#ffffff;--card:#f5f7f9;--rule:#d5dae0;
--grid:#e6e9ed;--blue:#0072b2;--orange:#e69f00;--green:#009e73;--purple:#aa4e84;--bad:#c14600"""
_DARK = """--ink:#e8eaed;--soft:#a3abb5;--page:#14171a;--card:#1e2327;--rule:#3a4148;
--grid:#2a3036;--blue:#56b4e9;--orange:#e69f00;--green:#2fc29a;--purple:#cc79a7;--bad:#ff8f4f"""

# What drawings need, wherever they are shown.
DRAWINGS = """
svg{display:block;width:100%;height:auto;font:12px/1.2 system-ui,"Segoe UI",Roboto,"DejaVu Sans",
sans-serif;fill:var(--ink)}
svg .grid{stroke:var(--grid)}svg .rule{stroke:var(--page);stroke-width:1.5}
svg .frame{fill:none;stroke:var(--rule)}
svg .tick,svg .axis,svg .faint{fill:var(--soft)}svg .tick{font-size:11px}
svg .faint{font-style:italic}svg .strong{font-weight:600}
svg .big{font-size:20px;font-weight:600;font-variant-numeric:tabular-nums}
svg .value{font-variant-numeric:tabular-nums}
svg .target{stroke:var(--ink);stroke-dasharray:4 3}
svg .guide{stroke:var(--soft);stroke-dasharray:2 3}
svg .tick-mark{stroke:var(--blue);stroke-opacity:.6}svg .whisker{stroke:var(--ink);stroke-width:1.2}
svg .hair{stroke:var(--ink);stroke-width:1;stroke-opacity:.38}
svg .span{stroke:var(--soft);stroke-width:2}
svg .point,svg .fill,svg .blue,svg .plus{fill:var(--blue)}svg .bad{fill:var(--bad)}
svg .orange,svg .minus{fill:var(--orange)}svg .green{fill:var(--green)}
svg .purple{fill:var(--purple)}
svg .self{fill:var(--rule)}svg .soft{fill-opacity:.62}svg .faint-fill{fill-opacity:.25}
svg .left{fill:var(--grid)}
svg .hollow{fill:var(--page);stroke:var(--soft);stroke-width:1.5}
svg .stroke,svg .blue-line,svg .orange-line,svg .green-line,
svg .purple-line{fill:none;stroke:var(--blue);stroke-width:2}
svg .orange-line{stroke:var(--orange)}svg .green-line{stroke:var(--green)}
svg .purple-line{stroke:var(--purple)}
svg .d1{stroke-dasharray:7 3}svg .d2{stroke-dasharray:2 3}svg .d3{stroke-dasharray:9 3 2 3}
svg .area{fill:var(--blue);fill-opacity:.12}svg .solid{fill-opacity:.45}
svg .on{paint-order:stroke;stroke:var(--page);stroke-width:3px;stroke-linejoin:round}
"""

PAGE = f"""
:root{{color-scheme:light dark;{_LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}
@media print{{:root{{color-scheme:light;{_LIGHT}}}}}
*{{box-sizing:border-box}}
html{{scroll-behavior:smooth}}
@media (prefers-reduced-motion:reduce){{html{{scroll-behavior:auto}}}}
body{{margin:0;background:var(--page);color:var(--ink);
font:16px/1.55 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}}
header,main,footer{{max-width:54rem;margin:0 auto;padding:0 1.25rem}}
header{{padding-top:2.2rem}}
h1{{font-size:1.9rem;line-height:1.2;margin:0 0 .3rem}}
h2{{font-size:1.3rem;margin:2.6rem 0 .6rem;padding-top:.4rem;border-top:1px solid var(--rule)}}
h3{{font-size:1.05rem;margin:1.6rem 0 .4rem}}
p{{margin:.6rem 0}}small,.note,.kicker{{color:var(--soft)}}.note{{font-size:.88rem}}
.kicker{{text-transform:uppercase;letter-spacing:.06em;font-size:.78rem;margin:0}}
.lead{{font-size:1.08rem}}
.facts{{display:grid;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));
gap:.7rem;margin:1.3rem 0;
padding:0;list-style:none}}
.facts li{{background:var(--card);border-radius:.5rem;padding:.75rem .9rem}}
.facts b{{display:block;font-size:1.3rem;line-height:1.3;font-variant-numeric:tabular-nums}}
.facts span{{color:var(--soft);font-size:.88rem}}
nav ol{{columns:2;margin:.3rem 0;padding-left:1.3rem}}nav{{font-size:.95rem}}
a{{color:var(--blue)}}a:focus-visible,summary:focus-visible,.wide:focus-visible{{
outline:3px solid var(--orange);outline-offset:2px}}
.skip{{position:absolute;left:-99rem}}.skip:focus{{left:1rem;top:.5rem;background:var(--page);padding:.4rem}}
figure{{margin:1.2rem 0 1.8rem;padding:1rem;border:1px solid var(--rule);border-radius:.6rem}}
figcaption{{font-weight:600;margin-bottom:.6rem}}
.wide{{overflow-x:auto}}.wide>svg{{min-width:34rem}}
details{{margin:.5rem 0}}summary{{cursor:pointer;color:var(--blue)}}
details>.wide{{max-height:28rem;overflow:auto}}
table{{border-collapse:collapse;font-size:.88rem;margin:.5rem 0;width:100%}}
caption{{text-align:left;color:var(--soft);padding:.3rem 0;caption-side:bottom}}
th,td{{text-align:left;padding:.28rem .7rem .28rem 0;border-bottom:1px solid var(--grid);
vertical-align:top;font-weight:400}}
thead th{{color:var(--soft);border-bottom:1px solid var(--rule);font-weight:600}}
.n{{text-align:right;font-variant-numeric:tabular-nums}}
ul{{padding-left:1.2rem}}li{{margin:.25rem 0}}
code,pre{{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:.86em}}
pre{{background:var(--card);padding:.8rem;border-radius:.5rem;white-space:pre-wrap;overflow-wrap:anywhere}}
code,td{{overflow-wrap:anywhere}}
footer{{margin:3rem auto 2rem;color:var(--soft);font-size:.88rem}}
@media (max-width:40rem){{h1{{font-size:1.5rem}}nav ol{{columns:1}}figure{{padding:.7rem}}}}
@media print{{body{{font-size:10.5pt}}nav,details,.skip{{display:none}}
figure,.facts li,tr{{break-inside:avoid}}
h2,h3,figcaption{{break-after:avoid}}.wide{{overflow:visible}}.wide>svg{{min-width:0}}
header,main,footer{{max-width:none;padding:0}}figure{{border-color:#bbb}}}}
@page{{margin:16mm}}
{DRAWINGS}"""

# The same for a picture by itself in a notebook, whose page has its own colours.
SCRAP = (
    f".noiseshape{{{_LIGHT};max-width:46rem;color:var(--ink)}}"
    f"@media (prefers-color-scheme:dark){{.noiseshape{{{_DARK}}}}}"
    + DRAWINGS.replace("svg .", ".noiseshape svg .").replace("\nsvg{", "\n.noiseshape svg{")
)


def standalone(drawn: str, width: float, height: float, said: str) -> str:
    """Return a drawing as an SVG file by itself, light or dark as the page that shows it."""
    style = (
        f"svg{{{_LIGHT}}}@media (prefers-color-scheme:dark){{svg{{{_DARK}}}}}{DRAWINGS}"
        "svg .title{font-size:17px;font-weight:600}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" aria-label="{said}">'
        f'<style>{style}</style><rect width="100%" height="100%" style="fill:var(--page)"/>'
        f"{drawn}</svg>\n"
    )
