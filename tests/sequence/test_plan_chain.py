"""The chain of hashes of a plan: the numbers of its specification, and that no changed trace opens anything."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdcduck.methods.sequence import plans
from sdcduck.methods.sequence.plans import Binding

STATEMENTS = [
    "SELECT region, count(*) AS n FROM person GROUP BY region",
    "SELECT region, avg(income) AS m FROM person GROUP BY region",
    "SELECT corr(age, income) AS r FROM person",
]
TRACES = [
    "7cc22bac423414a348f56a758dc9d9271acab826c10a5cf67420ac88303ec759475fc1ea4c7b10c95ec67e69ab8c05d31dfc20834ca3899425cb0d018fe01792",
    "edb32de9cd0db4a43a69b1178dbc1b5c5d7af349932ad45c3c2546dd364520bd9a2bb98bdef3974d67d4440b54643a3ab9a26c5dd3715fcca61fb18fca4303f4",
    "d56948a1ff91eb79e9280f63cc0df81562e8ce225aa9c96526c3dcaa8936ff723e6280c7ea344d2e61c4514cee1e0a02b8d8da86e9cd49c3aac48b13a87505ee",
    "fd981d6e80907b5cf7c57f7269d0b233389f39166968d9e815b18dee43aebf64c345648fb6d1f4aa1dca19f12dcfb89d7f65c82c0f996493bb8d15ff24f9523b",
]
HASHES = [
    "d7e6b5fda352d0bf618cb011e7599c8be9b343f275d29f29a74301d6a4bbe3fe",
    "5b6b4234ec5d4e7a0c5b7a1cc1da9ee2ae9b182138b904cf18b734ab1cb8fd4c",
    "6c8bf26b7df5ab0c4ff5c96f70e4848c04d538fd4240e19f78c93808b246f8be",
]
PRIVATE = bytes(range(32))
PUBLIC = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
SIGNATURE = "bbbd851cb7367903da505757c5a880ed340126a75f059d17434aeb7d1c4e6a78263a0f61350ad7b9b83b5575751857de1eecd93c76c733881372d5edd3e20f08"


def toy(data: bytes) -> bytes:
    """The hash of eight bits of the specification, 3.1."""
    x = data[0]
    return bytes([(5 * x * x + 17 * x + 43) // 3 % 256])


def sealed(statements: list[str] = STATEMENTS) -> list[bytes]:
    return plans.traces([plans.block(text, step, bytes([step % 256]) * 16) for step, text in enumerate(statements, 1)])


def test_toy_chain_by_hand() -> None:
    blocks = [b"\x1a", b"\x2b", b"\x3c"]
    assert [one[0] for one in plans.traces(blocks, toy)] == [146, 201, 236, 210]
    assert (toy(b"\xd2")[0], toy(b"\xec")[0], toy(b"\xc9")[0]) == (208, 226, 136)
    t0, t1, t2, t3 = plans.traces(blocks, toy)
    assert [plans.opened(t0, t1, toy), plans.opened(t1, t2, toy), plans.opened(t2, t3, toy)] == blocks
    assert plans.is_last(b"\x3c", t3, toy)
    assert not plans.is_last(b"\x2b", t2, toy)
    assert plans.opened(t1, bytes([t2[0] ^ 1]), toy) == b"\x35"
    assert toy(bytes([5 ^ 9]))[0] == 66
    assert toy(b"\x05")[0] ^ toy(b"\x09")[0] == 156


def test_full_size_vector_to_the_byte() -> None:
    assert [plans.hash_of_text(text).hex() for text in STATEMENTS] == HASHES
    assert [trace.hex() for trace in sealed()] == TRACES
    assert plans.public_key(PRIVATE).hex() == PUBLIC
    assert plans.sign(PRIVATE, sealed()[0]).hex() == SIGNATURE
    assert plans.is_signed(bytes.fromhex(PUBLIC), bytes.fromhex(SIGNATURE), sealed()[0])
    assert plans.first_broken(sealed(), STATEMENTS) is None


def test_flipped_bit_opens_the_block_of_the_specification() -> None:
    _, t1, t2, _ = sealed()
    found = plans.opened(t1, bytes([t2[0] ^ 1]) + t2[1:])
    assert found[-8:].hex() == "26b2a29a4b09b234"
    assert not plans.is_block(found, 2)


def test_one_step() -> None:
    t0, t1 = sealed(["SELECT 1"])
    found = plans.opened(t0, t1)
    assert plans.is_block(found, 1)
    assert plans.is_last(found, t1)


def test_messages_of_different_bindings_differ() -> None:
    head = sealed()[0]
    bindings = [
        None, Binding(), Binding(data="a"), Binding(release="a"), Binding(policy="a"), Binding(data="ab"),
        Binding("a", "b"), Binding(steps=1), Binding(expires=0), Binding(expires=1),
    ]  # fmt: skip
    assert len({plans.message(head, one) for one in bindings}) == len(bindings)
    assert plans.message(head) == head


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), b"\xff" * 32])
def test_what_is_no_key_has_signed_nothing(key: bytes) -> None:
    assert not plans.is_signed(key, bytes.fromhex(SIGNATURE), sealed()[0])


def test_cut_or_empty_plans_are_broken() -> None:
    found = sealed()
    assert plans.first_broken(found[:-1], STATEMENTS) == 0
    assert plans.first_broken(found[:-1], STATEMENTS[:-1]) == 2  # it does not end there
    assert plans.first_broken([], []) == 0
    assert plans.first_broken([one[:-1] for one in found], STATEMENTS) == 0
    with pytest.raises(ValueError, match="a step at least"):
        plans.traces([])
    with pytest.raises(ValueError, match="16 bytes"):
        plans.block("SELECT 1", 1, b"short")


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 50))
def test_any_change_is_found_where_it_is_or_before(data: st.DataObject, steps: int) -> None:
    texts = [f"SELECT {data.draw(st.integers(0, 9))} AS s{step}" for step in range(steps)]
    salts = [data.draw(st.binary(min_size=16, max_size=16)) for _ in texts]
    blocks = [plans.block(text, step, salt) for step, (text, salt) in enumerate(zip(texts, salts, strict=True), 1)]
    found = plans.traces(blocks)
    signature, public = plans.sign(PRIVATE, found[0]), bytes.fromhex(PUBLIC)
    assert plans.first_broken(found, texts) is None

    step, bit = data.draw(st.integers(0, steps)), data.draw(st.integers(0, 8 * plans.LENGTH - 1))
    changed = bytearray(found[step])
    changed[bit // 8] ^= 1 << bit % 8
    altered = [*found[:step], bytes(changed), *found[step + 1 :]]
    if step == 0:
        assert not plans.is_signed(public, signature, altered[0])
    else:
        broken = plans.first_broken(altered, texts)
        assert broken is not None
        assert broken <= step

    place = data.draw(st.integers(1, steps))
    other = texts.copy()
    other[place - 1] += " "
    assert plans.first_broken(found, other) == place
    for moved in (
        [*found[:place], *found[place + 1 :]],  # dropped
        [*found[:place], found[place], *found[place:]],  # told twice
        [*found[: place - 1], found[place], found[place - 1], *found[place + 1 :]],  # swapped
    ):
        assert plans.first_broken(moved, texts) is not None
        if place <= len(moved) - 1 and place > 1:
            assert plans.first_broken(moved, texts[: len(moved) - 1] + texts[:1] * (len(moved) - 1 - steps)) is not None
