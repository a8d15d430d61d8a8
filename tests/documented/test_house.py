"""What should never grow back: file names that stand twice, modules with one user, forms asked of outside."""

import re
from pathlib import Path

from tests.house import asking_for_forms, modules, names_used_twice, packaged, with_one_user

MOST_WITH_ONE_USER = 40
ROOT = Path(__file__).parents[2]


def test_no_file_name_stands_twice() -> None:
    assert not names_used_twice(modules("hexconv", "reports"))


def test_few_modules_have_one_user() -> None:
    assert len(with_one_user(packaged())) <= MOST_WITH_ONE_USER


def test_no_one_asks_which_form_computes_a_conv() -> None:
    """Whether it is depthwise, dense or in groups is known in the form's own file, and in the code emitted for it."""
    assert not asking_for_forms(modules("hexconv"))


PRIVATE_WORDS = (
    r"takes? turns",
    r"stripes? (that )?runs? in\b",
    r"multipl(y|ies) for nothing",
    r"own_words",
    r"taken_apart",
    r"in_turns",
    r"\blaps?\b",
    r"is asked for by",
    r"has no say",
    r"states of itself",
    r"is a wish\b",
    r"all else ends? a chain",
    r"what decides",
    r"deals? (\w+ )*out to threads",
    r"copies apart into",
    r"figure is asked",
    r"the first of all convs",
    r"by which others know",
    r"a row of convs",
    r"starting its copies\b.*counts",
    r"[Oo]nly a longer chain moves less",
    r"decided and not found",
    r"that two of them read",
    r"shares words",
    r"a narrow tensor that conv",
    r"[Ll]et stripes run",
    r"keep the columns which",
    r"[Ff]ind what decides",
    r"[Nn]o other cut into searched plans",
    r"row of convs",
    r"first of all convs that are alike",
    r"columns that two of them read",
    r"copies apart into",
    r"know its slots",
    r"are decided and not found",
    r"all convs that are alike",
    r"seed document",
    r"document 003",
    r"\b(kernel|one) that is wished for",
    r"of which nobody says",
    r"multiplied in vain",
    r"(caches|buffers|tensors) take in turns",
    r"is dealt to",
    r"in (the )?place of the above",
    r"asks of a GPU",
    r"the words above the drawing",
    r"as ONNX means it",
    r"come of `",
    r"never obeys what",
)
"""What the field has other words for: sharing memory, warm-up stripes, wasted multiplies, a slice, bands of rows."""


def test_code_and_pages_speak_in_the_words_of_the_field() -> None:
    text = [
        *ROOT.glob("hexconv/**/*.py"),
        *ROOT.glob("hexconv/**/*.md"),
        *ROOT.glob("hexconv/**/*.j2"),
        *ROOT.glob("reports/*.py"),
        *ROOT.glob(".changes/*.md"),
        *ROOT.glob("*.md"),
    ]
    private = re.compile("|".join(PRIVATE_WORDS))
    found = [
        (str(path.relative_to(ROOT)), line)
        for path in text
        for line in path.read_text().splitlines()
        if private.search(line)
    ]
    assert not found
