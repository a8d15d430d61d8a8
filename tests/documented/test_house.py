"""What should never grow back: file names that stand twice, modules with one user, forms asked of outside."""

from tests.house import asking_for_forms, modules, names_used_twice, packaged, with_one_user

MOST_WITH_ONE_USER = 40


def test_no_file_name_stands_twice() -> None:
    assert not names_used_twice(modules("hexconv", "reports"))


def test_few_modules_have_one_user() -> None:
    assert len(with_one_user(packaged())) <= MOST_WITH_ONE_USER


def test_no_one_asks_which_form_computes_a_conv() -> None:
    """Whether it is depthwise, dense or in groups is known in the form's own file, and in the code emitted for it."""
    assert not asking_for_forms(modules("hexconv"))
