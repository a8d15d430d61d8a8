import doctest
from pathlib import Path

import hexconv.layout


def test_the_examples_of_the_readme_hold():
    readme = Path(hexconv.layout.__file__).with_name("README.md")
    result = doctest.testfile(str(readme), module_relative=False)
    assert result.attempted > 4
    assert not result.failed
