"""Certificates of a group: what is made, what is accepted, and what is said when it is not."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import ssl
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from ordercast.errors import OrdercastError, PeerError, UsageError
from ordercast.runtime.keys import Credentials, KeyFiles, make_group, peer_name

LONG_AGO = datetime.now(UTC) - timedelta(days=400)


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The keys of a group that no test changes."""
    directory = tmp_path_factory.mktemp("orders") / "keys"
    make_group(directory, "orders", ["a", "b"])
    return directory


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


# What is made


def test_a_group_gets_a_ca_and_each_member_a_certificate_and_a_key(orders: Path) -> None:
    assert set(contents(orders)) == {"ca.pem", "ca.key", "a.pem", "a.key", "b.pem", "b.key"}
    assert mode(orders) == 0o700
    assert {mode(key) for key in orders.glob("*.key")} == {0o600}


def test_members_can_be_added_with_the_same_ca(tmp_path: Path) -> None:
    first = make_group(tmp_path, "orders", ["a"])
    before = contents(tmp_path)
    second = make_group(tmp_path, "orders", ["b"])
    assert (first.new_authority, second.new_authority) == (True, False)
    assert before.items() < contents(tmp_path).items()
    old, new = (Credentials.load(tmp_path, group="orders", me=name) for name in "ab")
    assert asyncio.run(meet(old, new)) == ("a", "b")


def test_a_member_may_be_called_like_its_group(tmp_path: Path) -> None:
    """The two certificates must not look like one that has signed itself."""
    make_group(tmp_path, "a", ["a"])
    assert Credentials.load(tmp_path, group="a", me="a").me == "a"


@pytest.mark.parametrize(
    ("group", "names", "days", "said"),
    [
        ("orders", ["c", "a"], 365, "a.pem exists and is not overwritten: move it away first"),
        ("other", ["c"], 365, "is the CA of group 'orders', not of 'other'"),
        ("orders", ["c", "c"], 365, "'c' is named twice"),
        ("orders", [], 365, "name at least one member"),
        ("orders", ["Ca"], 365, "a member cannot be called 'Ca'"),
        ("orders", ["../c"], 365, "'../c' cannot be the name of a member: take 1 to 63 letters"),
        ("orders", ["c\n"], 365, "cannot be the name of a member"),
        ("orders", ["c" * 64], 365, "cannot be the name of a member"),
        ("or/ders", ["c"], 365, "'or/ders' cannot be the name of a group"),
        ("orders", ["c"], 0, "0 days: choose from 1"),
        ("orders", ["c"], 4000, "before 4000 days are over: ask for fewer"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_no_trace(
    orders: Path, group: str, names: list[str], days: int, said: str
) -> None:
    before = contents(orders)
    with pytest.raises(UsageError, match=re.escape(said)):
        make_group(orders, group, names, days=days)
    assert contents(orders) == before


def test_a_ca_without_its_key_cannot_add_members(tmp_path: Path, orders: Path) -> None:
    shutil.copy(orders / "ca.pem", tmp_path)
    with pytest.raises(UsageError, match=r"there is .*ca\.pem and no ca\.key"):
        make_group(tmp_path, "orders", ["c"])


def test_a_ca_and_the_key_of_another_are_noticed(tmp_path: Path, orders: Path) -> None:
    make_group(tmp_path, "orders", ["a"])
    shutil.copy(orders / "ca.pem", tmp_path)
    with pytest.raises(UsageError, match=r"ca\.key is not the key of .*ca\.pem"):
        make_group(tmp_path, "orders", ["c"])


def test_a_ca_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("hello")
    (tmp_path / "ca.key").write_text("hello")
    with pytest.raises(UsageError, match="are not the CA of a group"):
        make_group(tmp_path, "orders", ["c"])


def test_when_the_disk_fails_in_the_middle_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def full(source: Path, target: Path) -> None:
        if target.name == "b.key":
            raise OSError("no space left")
        link(source, target)

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="no space left"):
        make_group(tmp_path, "orders", ["a", "b"])
    assert contents(tmp_path) == {}


def test_a_file_that_appears_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def late(source: Path, target: Path) -> None:
        if target.name == "a.pem":
            target.write_text("of somebody else")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(UsageError, match=r"a\.pem exists and is not overwritten"):
        make_group(tmp_path, "orders", ["a"])
    assert contents(tmp_path) == {"a.pem": b"of somebody else"}


def test_openssl_itself_accepts_what_is_made(orders: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl command here")
    command = ["openssl", "verify", "-x509_strict", "-CAfile", "ca.pem", "a.pem", "b.pem"]
    done = subprocess.run(command, cwd=orders, capture_output=True, text=True)
    assert done.stdout.split() == ["a.pem:", "OK", "b.pem:", "OK"]


# Without the package cryptography


def without_cryptography(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    lines = ["import sys", "sys.modules['cryptography'] = None", program]
    command = [sys.executable, "-c", "\n".join(lines), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_loading_does_without_cryptography(orders: Path) -> None:
    program = (
        "from ordercast.runtime.keys import Credentials\n"
        "print(Credentials.load(sys.argv[1], group='orders', me='a').me)"
    )
    done = without_cryptography(program, str(orders))
    assert (done.stdout, done.stderr) == ("a\n", "")


def test_making_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "from ordercast.cli import main\n"
        "sys.exit(main(['keys', sys.argv[1], '--group', 'orders', 'a']))"
    )
    done = without_cryptography(program, str(tmp_path / "keys"))
    assert done.returncode == 2
    assert done.stderr == (
        "ordercast keys: making keys needs the package cryptography: "
        "pip install 'ordercast[keys]'\n"
    )
    assert list(tmp_path.iterdir()) == []


# What is loaded


def test_both_contexts_speak_tls_1_3_only_and_ask_for_a_certificate(orders: Path) -> None:
    mine = Credentials.load(orders, group="orders", me="a")
    for context in (mine.server, mine.client):
        assert context.minimum_version == ssl.TLSVersion.TLSv1_3
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert len(context.get_ca_certs()) == 1
    assert timedelta(days=364) < mine.expires - datetime.now(UTC) <= timedelta(days=365)


def test_the_files_can_lie_anywhere(tmp_path: Path, orders: Path) -> None:
    files = KeyFiles(tmp_path / "authority", tmp_path / "mine", tmp_path / "secret")
    for source, target in zip(KeyFiles.of(orders, "a"), files, strict=True):
        shutil.copy(source, target)
    assert Credentials.load(files, group="orders", me="a").me == "a"


def copied(source: Path, target: Path) -> Path:
    """A directory of keys that a test may spoil."""
    return Path(shutil.copytree(source, target / "keys"))


def refusal(directory: Path, *, group: str = "orders", me: str = "a") -> str:
    with pytest.raises(OrdercastError) as raised:
        Credentials.load(directory, group=group, me=me)
    return str(raised.value).replace(f"{directory}/", "")


def test_a_missing_file_says_how_to_make_it(tmp_path: Path) -> None:
    assert refusal(tmp_path).startswith("there is no file ca.pem: make keys with 'ordercast keys ")


def test_somebody_elses_key(tmp_path: Path, orders: Path) -> None:
    keys = copied(orders, tmp_path)
    shutil.copy(keys / "b.key", keys / "a.key")
    assert refusal(keys) == "a.key is not the key of a.pem"


def test_somebody_elses_certificate(tmp_path: Path, orders: Path) -> None:
    keys = copied(orders, tmp_path)
    shutil.copy(keys / "b.key", keys / "a.key")
    shutil.copy(keys / "b.pem", keys / "a.pem")
    said = "a.pem is of member 'b' of group 'orders': give one of 'a' of group 'orders'"
    assert refusal(keys) == said


def test_another_group(orders: Path) -> None:
    said = "a.pem is of member 'a' of group 'orders': give one of 'a' of group 'sales'"
    assert refusal(orders, group="sales") == said


def test_another_ca_of_the_same_group_name(tmp_path: Path, orders: Path) -> None:
    make_group(tmp_path, "orders", ["a"])
    shutil.copy(orders / "ca.pem", tmp_path)
    assert refusal(tmp_path).startswith("a.pem was not issued by the CA in ca.pem")


def test_a_certificate_that_has_expired(tmp_path: Path) -> None:
    make_group(tmp_path, "orders", ["a"], days=30, now=LONG_AGO)
    assert refusal(tmp_path).startswith("a.pem has expired: make a new one")


def test_a_ca_that_has_expired(tmp_path: Path) -> None:
    make_group(tmp_path, "orders", ["a"], now=LONG_AGO - timedelta(days=3650))
    assert refusal(tmp_path).startswith("the group's CA in ca.pem has expired")


def test_a_certificate_from_the_future(tmp_path: Path) -> None:
    make_group(tmp_path, "orders", ["a"], now=datetime.now(UTC) + timedelta(days=1))
    assert "not valid yet: is the clock of this machine right?" in refusal(tmp_path)


@pytest.mark.parametrize("file", ["a.pem", "a.key"])
def test_files_that_are_something_else(tmp_path: Path, orders: Path, file: str) -> None:
    keys = copied(orders, tmp_path)
    (keys / file).write_text("hello\n")
    said = "a.pem and a.key are not a certificate and its key in PEM form"
    assert refusal(keys) == said


def test_a_ca_that_is_none(tmp_path: Path, orders: Path) -> None:
    keys = copied(orders, tmp_path)
    shutil.copy(keys / "b.pem", keys / "ca.pem")
    assert refusal(keys).startswith("ca.pem is not the certificate of a CA")
    (keys / "ca.pem").write_text("hello\n")
    assert refusal(keys).startswith("ca.pem holds no certificate")


def test_an_encrypted_key_is_refused_and_nobody_is_asked(tmp_path: Path, orders: Path) -> None:
    from cryptography.hazmat.primitives import serialization as form

    keys = copied(orders, tmp_path)
    key = form.load_pem_private_key((keys / "a.key").read_bytes(), None)
    secret = form.BestAvailableEncryption(b"secret")
    (keys / "a.key").write_bytes(
        key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, secret)
    )
    assert refusal(keys) == "a.key is encrypted: give a key without a password"


def test_a_certificate_that_ends_soon_is_warned_of(
    tmp_path: Path, orders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Credentials.load(orders, group="orders", me="a")
    assert caplog.messages == []
    make_group(tmp_path, "orders", ["a"], days=29)
    Credentials.load(tmp_path, group="orders", me="a")
    [(_, level, said)] = caplog.record_tuples
    assert level == logging.WARNING
    assert re.search(r"a\.pem expires on \d{4}-\d\d-\d\d: make a new one", said)


def test_a_key_that_others_can_read_is_warned_of(
    tmp_path: Path, orders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = copied(orders, tmp_path)
    (keys / "a.key").chmod(0o640)
    Credentials.load(keys, group="orders", me="a")
    assert "a.key can be read by others" in caplog.text


# Who is at the other end


async def meet(calling: Credentials, called: Credentials) -> tuple[str, str]:
    """Over a real connection: whom the called one sees, and whom the calling one sees."""
    seen: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            seen.set_result(peer_name(writer.get_extra_info("ssl_object"), called.group))
            writer.write(b"welcome")
        except PeerError as error:
            seen.set_exception(error)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=called.server)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=calling.client)
        try:
            # With TLS 1.3 a caller is refused only after it has finished its part.
            if await reader.read() != b"welcome" and not seen.done():
                raise ConnectionResetError("refused")
            return await seen, peer_name(writer.get_extra_info("peercert"), calling.group)
        finally:
            writer.close()


def test_members_see_each_others_names(orders: Path) -> None:
    mine, theirs = (Credentials.load(orders, group="orders", me=name) for name in "ab")
    assert asyncio.run(meet(mine, theirs)) == ("a", "b")


def test_a_member_of_an_impostors_group_is_refused_by_both_sides(
    tmp_path: Path, orders: Path
) -> None:
    make_group(tmp_path, "orders", ["a"])
    false = Credentials.load(tmp_path, group="orders", me="a")
    real = Credentials.load(orders, group="orders", me="b")
    with pytest.raises(ssl.SSLCertVerificationError):
        asyncio.run(meet(real, false))
    false.client.verify_mode = ssl.CERT_NONE  # an impostor does not mind whom it calls
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        asyncio.run(meet(false, real))


def test_a_caller_without_a_certificate_is_refused(orders: Path) -> None:
    real = Credentials.load(orders, group="orders", me="b")
    nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    nobody.check_hostname = False
    nobody.verify_mode = ssl.CERT_NONE
    caller = msgspec.structs.replace(real, me="a", client=nobody)
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        asyncio.run(meet(caller, real))


def test_an_old_tls_version_is_refused(orders: Path) -> None:
    mine, theirs = (Credentials.load(orders, group="orders", me=name) for name in "ab")
    mine.client.minimum_version = ssl.TLSVersion.TLSv1_2
    mine.client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        asyncio.run(meet(mine, theirs))


@pytest.mark.parametrize(
    ("uris", "said"),
    [
        (["ordercast://sales/a"], "the peer is 'a' of group 'sales', and this is 'orders'"),
        ([], "names no single member"),
        (["ordercast://orders"], "names no single member"),
        (["ordercast://orders/"], "names no single member"),
        (["ordercast://orders/a/b"], "names no single member"),
        (["ordercast://orders/a\n"], "names no single member"),
        (["ordercast://orders/%61"], "names no single member"),
        (["https://orders/a"], "names no single member"),
        (["ordercast://orders/a", "ordercast://orders/b"], "names no single member"),
    ],
)
def test_a_certificate_that_does_not_say_who_is_no_member(uris: list[str], said: str) -> None:
    certificate = {"subjectAltName": tuple(("URI", uri) for uri in uris)}
    with pytest.raises(PeerError, match=said):
        peer_name(certificate, "orders")


def test_only_the_uri_counts() -> None:
    alternatives = (("DNS", "ordercast://orders/x"), ("URI", "ordercast://orders/a"))
    assert peer_name({"subjectAltName": alternatives}, "orders") == "a"


@pytest.mark.parametrize("nothing", [None, {}])
def test_a_connection_without_a_certificate_has_no_name(nothing: dict[str, object] | None) -> None:
    with pytest.raises(PeerError, match="the peer has shown no certificate"):
        peer_name(nothing, "orders")
