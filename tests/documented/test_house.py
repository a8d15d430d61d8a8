"""What should never grow back: file names that stand twice, and modules that only one other imports."""

from tests.house import modules, names_used_twice, with_one_user

MOST_WITH_ONE_USER = 55


def test_no_file_name_stands_twice() -> None:
    assert not names_used_twice(modules("hexconv", "reports"))


def test_few_modules_have_one_user() -> None:
    assert len(with_one_user(modules("hexconv"))) <= MOST_WITH_ONE_USER
