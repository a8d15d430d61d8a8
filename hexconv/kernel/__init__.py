"""What fills the innermost part of the nest for one conv, and how the tensors around it lie. No TVM."""

from hexconv.kernel.forms import Forms, can_be_nested, documented_forms, forms_of, is_nested, rows_forms

__all__ = ["Forms", "can_be_nested", "documented_forms", "forms_of", "is_nested", "rows_forms"]
