"""stub"""
from typing import Any
int_add = int_subtract = int_multiply = int_divide = int_modulo = int_negate = None
double_add = double_subtract = double_multiply = double_divide = double_negate = negate = None
same = different = None
def ordered(op: str) -> Any:
    return None
