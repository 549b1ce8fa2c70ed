"""The map of pairs as SVG, light enough for every answer and in the page's own colours.

`spinformer.explain.pictures.heat_map` draws the same for print.
"""

from spinformer.explain import Explanation
from spinformer.explain.layout import most_important, side_names
from spinformer.explain.markup import cut, escaped, shade, signed

# In pixels: of a cell, between cells, of a character of a name; and the most characters shown.
CELL, GAP, LETTER, LONGEST = 22, 1, 8, 12


def heat_svg(explanation: Explanation, most: int = 40) -> str:
    """Interactions of every two words, those of the `most` important ones where there are more."""
    chosen = most_important(explanation, most)
    words, matrix = explanation.words, explanation.interactions
    largest = max((abs(matrix[i][j]) for i in chosen for j in chosen), default=0.0) or 1.0
    shown = [cut(words[place].text, LONGEST) for place in chosen]
    names = [escaped(text) for text in shown]
    room = 14 + LETTER * max(map(len, shown))  # for the names
    side = room + CELL * len(chosen)
    parts = [
        f'<svg class="heat" role="img" width="{side + 4}" height="{side + 4}" viewBox="0 0 {side + 4} {side + 4}" '
        'aria-label="Interactions of every two words">',
        f'<rect class="ground" x="{room}" y="{room}" width="{side - room}" height="{side - room}"/>',
    ]
    for row, name in enumerate(names):
        middle = room + CELL * row + CELL / 2
        parts.append(f'<text x="{room - 6}" y="{middle + 4}" text-anchor="end">{name}</text>')
        parts.append(f'<text transform="translate({middle + 4},{room - 6}) rotate(-90)">{name}</text>')
    for row, i in enumerate(chosen):
        for column, j in enumerate(chosen):
            colour = shade(matrix[i][j] / largest)
            if colour and i != j:
                said = f"{names[row]} – {names[column]}: {signed(matrix[i][j])}"
                where = f'x="{room + CELL * column}" y="{room + CELL * row}" width="{CELL - GAP}" height="{CELL - GAP}"'
                parts.append(f'<rect class="g{colour}" {where}><title>{said}</title></rect>')
    first = sum(words[place].side == 0 for place in chosen)
    if 0 < first < len(chosen):
        at = room + CELL * first
        parts.append(f'<path class="border" d="M{at} {room}V{side}M{room} {at}H{side}"/>')
    return "".join([*parts, "</svg>"])


def said_of_map(explanation: Explanation, most: int = 40) -> str:
    """What the map shows."""
    count = len(explanation.words)
    of = f"the {most} most important of {count} words; " if count > most else ""
    parted = "; the lines part premise and hypothesis" if len(side_names(explanation)) > 1 else ""
    return f"{of}blue cells are synergy, orange ones antagonism{parted}"
