"""Lines out of a stream of bytes, however long they are: a watch sends an object a line, some are megabytes."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator


async def lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Each line without its end; what follows the last line end, if anything does, comes last."""
    begun: list[bytes] = []
    async for chunk in chunks:
        first, *more = chunk.split(b"\n")
        begun.append(first)
        if not more:
            continue
        yield b"".join(begun)
        for line in more[:-1]:
            yield line
        begun = [more[-1]] if more[-1] else []
    if begun:
        yield b"".join(begun)
