"""Parts of a page: a `Finding` is one answer, a `Listing` a table to read, a `Section` one question with its figures.

A listing is sorted, filtered, paged through and saved as CSV by the page. A section is made by a function from the
table to a `Section`, or to None where the table has nothing for it.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from haptera.report.figure import Figure


@dataclass(frozen=True, eq=False)
class Listing:
    """One table of the report.

    Attributes:
        title: What a row is, a few words.
        caption: How the columns were computed, and what was left out.
        frame: The rows, in the order in which they are first shown.
        labels: Column -> its heading, with the unit; else the column's name.
        on_paper: Whether it is printed; what is there to be searched is not.
    """

    title: str
    caption: str
    frame: pd.DataFrame
    labels: Mapping[str, str] = field(default_factory=dict)
    on_paper: bool = True


@dataclass(frozen=True)
class Picture:
    """An image made in Python, where what is shown is images.

    Attributes:
        title: What is shown, a few words.
        caption: How to read it.
        png: The file.
    """

    title: str
    caption: str
    png: bytes

    @property
    def source(self) -> str:
        """Return the listing as the page holds it."""
        return "data:image/png;base64," + b64encode(self.png).decode()


@dataclass(frozen=True)
class Tile:
    """Images beside one another, and what is said about them.

    Attributes:
        text: what they are, a few words.
        images: each as a data URI.
        detail: a second line; may be empty.
    """

    text: str
    images: tuple[str, ...]
    detail: str = ""


@dataclass(frozen=True)
class Gallery:
    """Tiles that fill the width of the page, as many in a row as fit.

    Attributes:
        title: what is shown, a few words.
        caption: how to read it, and how the images were chosen.
        tiles: in their order.
    """

    title: str
    caption: str
    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class Section:
    """A heading, a paragraph, and what stands below it.

    Attributes:
        title: The heading, also the entry of the page's navigation.
        text: One paragraph of plain text.
        figures: Charts, drawn when the reader comes near.
        tables: Tables below the charts.
        pictures: Images, above the charts.
        galleries: Images of the data, above the charts.
    """

    title: str
    text: str = ""
    figures: tuple[Figure, ...] = ()
    tables: tuple[Listing, ...] = ()
    pictures: tuple[Picture, ...] = ()
    galleries: tuple[Gallery, ...] = ()

    @classmethod
    def of(cls, title: str, text: str, *parts: Figure | Listing | Picture | None) -> "Section | None":
        """Return a section of those parts that show something; None where no part does.

        >>> Section.of("Models", "All of them.", None, Listing("Models", "One row each.", pd.DataFrame())) is None
        True
        """
        known = [part for part in parts if part and (isinstance(part, Picture) or not part.frame.empty)]
        figures = tuple(part for part in known if isinstance(part, Figure))
        tables = tuple(part for part in known if isinstance(part, Listing))
        pictures = tuple(part for part in known if isinstance(part, Picture))
        return cls(title, text, figures, tables, pictures) if known else None


MakeSection = Callable[[pd.DataFrame], Section | None]


@dataclass(frozen=True)
class Finding:
    """One answer of an analysis.

    Attributes:
        word: the question in a word, such as `line`; the first column of a summary.
        question: the same in full, such as `Is there a line?`.
        sentence: the answer.
        numbers: name -> what the sentence says in words, unrounded, and what stands behind it; JSON-like.
        number: the one that matters most, as the page shows it in large; may be empty.
        figure: the title of the figure, table or section that shows it, to which the page links; may be empty.
    """

    word: str
    question: str
    sentence: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
    number: str = ""
    figure: str = ""


def answer(word: str, question: str, *sentences: str, **numbers: Any) -> list[Finding]:
    """Return one answer of several sentences: the first has the word and the numbers, the others go on with it.

    Empty sentences are left out; without any there is no answer.

    >>> [finding.word for finding in answer("rank", "How many?", "5 of 6", "", "so one is missing", rank=5)]
    ['rank', '']
    """
    told = [sentence for sentence in sentences if sentence]
    if not told:
        return []
    return [Finding(word, question, told[0], numbers), *(Finding("", "", each) for each in told[1:])]


def enlarge(answers: list[Finding], number: str, figure: str) -> list[Finding]:
    """Return an answer with the number that a page shows in large, and the title of the figure behind it."""
    return [replace(first, number=number, figure=figure) for first in answers[:1]] + answers[1:]


def lead(answers: Sequence[Finding], shown: Mapping[str, tuple[str, str]]) -> list[Finding]:
    """Return answers with the number that a page shows in large and the title it links to, by word.

    >>> lead([Finding("rank", "How many?", "5 of 6")], {"rank": ("5 of 6", "Spectrum")})[0].figure
    'Spectrum'
    """
    given = [(each, *shown.get(each.word, (each.number, each.figure))) for each in answers]
    return [replace(each, number=number, figure=figure) for each, number, figure in given]
