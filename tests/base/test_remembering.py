"""What a function returned last is kept, as long as it fits."""

from concurrent.futures import ThreadPoolExecutor

from spinformer._base.remembering import Remembering


def square(most):
    asked = []

    def of(number):
        """The square."""
        asked.append(number)
        return number**2

    return Remembering(of, lambda number: number, most), asked


def test_a_result_is_computed_once():
    of, asked = square(100)
    assert [of(3), of(number=4), of(3), of(number=4)] == [9, 16, 9, 16]
    assert asked == [3, 4]
    assert of.__doc__ == "The square."


def test_the_last_used_that_fit_are_kept():
    of, asked = square(10)
    for number in (4, 5, 4, 3):  # 12 bytes: 5 was not used for longest
        of(number)
    assert list(of.kept) == [((4,),), ((3,),)]
    of(5)
    assert asked == [4, 5, 3, 5]
    assert of.bytes == 8


def test_one_is_kept_however_large():
    of, asked = square(10)
    assert of(50) == of(50) == 2500
    assert asked == [50]


def test_threads():
    of, _ = square(30)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(of, [number % 9 for number in range(900)])) == [(number % 9) ** 2 for number in range(900)]
    assert of.bytes == sum(size for _, size in of.kept.values()) <= 30
