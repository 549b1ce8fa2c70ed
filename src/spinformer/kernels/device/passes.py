"""Passes over the factors U of couplings J = U diag(w) U' - diag(d), in blocks of rows: U' x, U c, or both at once.

U comes in two: `first`, its first `split` columns, perhaps in 16 bits, which a program holds in P pieces of C columns;
and, where A is not 0, `others`, the rest, at most A columns, each row `stride` times UNIT numbers after the one before.
UNIT 4 says that their rows start at multiples of 16 bytes and end in zeros. So a row of a piece belongs to one warp,
sums over columns stay within it, and those over rows are made once, after the last tile. The sums of one sample over
all rows, a number for each column, have W places.

back: whether the tiles are taken from the last to the first. Every pass begins where the one before has ended, which is
what the cache still holds.
"""

import triton
import triton.language as tl


@triton.jit
def _rows(part, start, chunk, n, ROWS: tl.constexpr):
    """Rows of a block from its row `start` on, and which of them there are."""
    place = start + tl.arange(0, ROWS)
    row = part * chunk + place
    return row, (row < n) & (place < chunk)


@triton.jit
def _at(part, start, chunk, back, ROWS: tl.constexpr):
    """The first row of a block's tile."""
    return part * chunk + tl.where(back != 0, chunk - ROWS - start, start)


@triton.jit
def _tiles(
    first, others, at, n, rank, split, stride,
    ROWS: tl.constexpr, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """ROWS rows of U from row `at` on: the pieces of the first columns, then the others."""
    place = tl.arange(0, ROWS)
    there = (at + place < n)[:, None]
    first += at.to(tl.int64) * split
    tiles = ()
    for k in tl.static_range(P):
        column = k * C + tl.arange(0, C)
        keep = there & (column < split)[None, :]
        tiles += (tl.load(first + place[:, None] * split + column[None, :], keep, 0.0).to(tl.float32),)
    if A > 0:
        column, width = tl.arange(0, A), stride * UNIT
        keep = there & (column < (width if UNIT > 1 else rank - split))[None, :]
        others += at.to(tl.int64) * width
        tiles += (tl.load(others + place[:, None] * width + column[None, :], keep, 0.0),)
    return tiles


@triton.jit
def _pieces(numbers, rank, split, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr):
    """A number for each column of U, cut as `_tiles` has them."""
    pieces = ()
    for k in tl.static_range(P):
        column = k * C + tl.arange(0, C)
        pieces += (tl.load(numbers + column, column < split, 0.0),)
    if A > 0:
        column = split + tl.arange(0, A)
        pieces += (tl.load(numbers + column, column < rank, 0.0),)
    return pieces


@triton.jit
def _largest(pieces, P: tl.constexpr, A: tl.constexpr):
    """The largest |number| of the pieces."""
    largest = tl.max(tl.abs(pieces[0]), 0)
    for k in tl.static_range(1, P):
        largest = tl.maximum(largest, tl.max(tl.abs(pieces[k]), 0))
    if A > 0:
        largest = tl.maximum(largest, tl.max(tl.abs(pieces[P]), 0))
    return largest


@triton.jit
def _store_pieces(numbers, pieces, rank, split, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr):
    """Where `_pieces` loads from."""
    for k in tl.static_range(P):
        column = k * C + tl.arange(0, C)
        tl.store(numbers + column, pieces[k], column < split)
    if A > 0:
        column = split + tl.arange(0, A)
        tl.store(numbers + column, pieces[P], column < rank)


@triton.jit
def _image(tiles, c, P: tl.constexpr, A: tl.constexpr):
    """These rows of U c."""
    products = tiles[0] * c[0][None, :]
    for k in tl.static_range(1, P):
        products += tiles[k] * c[k][None, :]
    image = tl.sum(products, 1)
    if A > 0:
        image += tl.sum(tiles[P] * c[P][None, :], 1)
    return image


@triton.jit
def _nothing(ROWS: tl.constexpr, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr):
    """Sums of U' x before the first tile, a row of numbers for each row of a tile."""
    sums = ()
    for _k in tl.static_range(P):
        sums += (tl.zeros((ROWS, C), tl.float32),)
    if A > 0:
        sums += (tl.zeros((ROWS, A), tl.float32),)
    return sums


@triton.jit
def _gathered(sums, tiles, x, P: tl.constexpr, A: tl.constexpr):
    """The sums of U' x with these rows."""
    more = ()
    for k in tl.static_range(P):
        more += (sums[k] + tiles[k] * x[:, None],)
    if A > 0:
        more += (sums[P] + tiles[P] * x[:, None],)
    return more


@triton.jit
def _store_sums(partial, sums, rank, split, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr):
    """This block's part of U' x."""
    whole = ()
    for k in tl.static_range(P):
        whole += (tl.sum(sums[k], 0),)
    if A > 0:
        whole += (tl.sum(sums[P], 0),)
    _store_pieces(partial, whole, rank, split, C, P, A)


@triton.jit
def _pull_rows(
    first, others, x, partial, n, rank, split, stride, chunk, until, part, back,
    ROWS: tl.constexpr, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr, UNIT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """This block's part of U' x, to where `partial` points, from its first `until` rows. x: the sample's n numbers."""
    sums = _nothing(ROWS, C, P, A)
    for start in tl.range(0, until, ROWS, num_stages=STAGES):
        at = _at(part, start, chunk, back, ROWS)
        row = at + tl.arange(0, ROWS)
        tiles = _tiles(first, others, at, n, rank, split, stride, ROWS, C, P, A, UNIT)
        sums = _gathered(sums, tiles, tl.load(x + row, row < n, 0.0), P, A)
    _store_sums(partial, sums, rank, split, C, P, A)


@triton.jit
def join(
    partial, weights, done, total, rank, parts,
    W: tl.constexpr, JOINED: tl.constexpr, PARTS: tl.constexpr, CHECKED: tl.constexpr,
):  # fmt: skip
    """w_r sum over blocks of their part of (U' x)_r; CHECKED: of samples that are not done."""
    sample = tl.program_id(0).to(tl.int64)
    goes = True
    if CHECKED:
        goes = tl.load(done + sample) == 0
    if goes:
        column = tl.program_id(1) * JOINED + tl.arange(0, JOINED)
        sums = _joined(partial + sample * parts * W, column, rank, parts, W, JOINED, PARTS)
        weight = tl.load(weights + sample * rank + column, column < rank, 0.0)
        tl.store(total + sample * W + column, sums * weight, column < rank)


@triton.jit
def _joined(partial, column, rank, parts, W: tl.constexpr, JOINED: tl.constexpr, PARTS: tl.constexpr):
    """The sum over blocks of their part of these columns of U' x."""
    sums = tl.zeros((PARTS, JOINED), tl.float32)
    for start in range(0, parts, PARTS):
        part = start + tl.arange(0, PARTS)
        place = part[:, None] * W + column[None, :]
        sums += tl.load(partial + place, (part < parts)[:, None] & (column < rank)[None, :], 0.0)
    return tl.sum(sums, 0)


@triton.jit
def _inner(
    weights, partial, total, rank, split, parts,
    W: tl.constexpr, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """w U' x, which `join` has left in `total`; or, where PARTS is not 0, the blocks' parts are added up here."""
    if PARTS == 0:
        return _pieces(total, rank, split, C, P, A)
    else:
        pieces, weight = (), _pieces(weights, rank, split, C, P, A)
        for k in tl.static_range(P):
            column = k * C + tl.arange(0, C)
            pieces += (_joined(partial, column, split, parts, W, C, PARTS) * weight[k],)
        if A > 0:
            column = split + tl.arange(0, A)
            pieces += (_joined(partial, column, rank, parts, W, A, PARTS) * weight[P],)
        return pieces


@triton.jit
def _push_rows(
    first, others, weights, partial, total, images, n, rank, split, stride, chunk, parts, part, back, W: tl.constexpr,
    ROWS: tl.constexpr, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr, UNIT: tl.constexpr, STAGES: tl.constexpr,
    PARTS: tl.constexpr, SKIPS: tl.constexpr,
):  # fmt: skip
    """This block's rows of U c, to the sample's n numbers `images`; c as in `_inner`. SKIPS: nothing where c is 0."""
    c, until = _inner(weights, partial, total, rank, split, parts, W, C, P, A, PARTS), chunk
    if SKIPS:
        until = tl.where(_largest(c, P, A) > 0, chunk, 0)
    for start in tl.range(0, until, ROWS, num_stages=STAGES):
        at = _at(part, start, chunk, back, ROWS)
        row = at + tl.arange(0, ROWS)
        tiles = _tiles(first, others, at, n, rank, split, stride, ROWS, C, P, A, UNIT)
        tl.store(images + row, _image(tiles, c, P, A), row < n)


@triton.jit
def pull_vector(
    first, others, x, partial, n, rank, split, stride, chunk, parts,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr,
    UNIT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """This block's part of U' x."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first += sample * n * split
    others += sample * n * stride * UNIT
    sums = partial + (sample * parts + part) * W
    _pull_rows(
        first, others, x + sample * n, sums, n, rank, split, stride, chunk, chunk, part, 0, ROWS, C, P, A, UNIT, STAGES
    )


@triton.jit
def push_vector(
    first, others, weights, diagonal, x, partial, total, out, n, rank, split, stride, chunk, parts,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr,
    UNIT: tl.constexpr, STAGES: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """This block's rows of U c - d x."""
    sample, part = tl.num_programs(0).to(tl.int64) - 1 - tl.program_id(0), parts - 1 - tl.program_id(1)
    first += sample * n * split
    others += sample * n * stride * UNIT
    sums = partial + sample * parts * W
    c = _inner(weights + sample * rank, sums, total + sample * W, rank, split, parts, W, C, P, A, PARTS)
    for start in tl.range(0, chunk, ROWS, num_stages=STAGES):
        at = _at(part, start, chunk, 1, ROWS)
        row = at + tl.arange(0, ROWS)
        known, place = row < n, sample * n + row
        tiles = _tiles(first, others, at, n, rank, split, stride, ROWS, C, P, A, UNIT)
        own = tl.load(diagonal + place, known, 0.0) * tl.load(x + place, known, 0.0)
        tl.store(out + place, _image(tiles, c, P, A) - own, known)
