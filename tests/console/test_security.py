"""Users, ACLs and quotas in the console of a secured cluster, by somebody who may change them and others."""

from collections.abc import Callable, Iterator
from contextlib import closing
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, StorageState, expect

from cli.secure_up import Secured, administrator
from console.logging_in import log_in, password_of
from console.reading import TIMEOUT_MS, Reader
from headrace.client.admin.admin import Admin
from headrace.security.acls import AclFilter
from support.process import UpProcess

SECRET = "a-secret-of-carol"
HOSTILE = '<img src=x onerror="window.hurt=1">'  # without a slash, which names of ACLs cannot have
As = Callable[..., Reader]


@pytest.fixture(scope="module")
def commands(secure_up: UpProcess) -> Secured:
    return administrator(secure_up)


@pytest.fixture(scope="module")
def admin(commands: Secured) -> Iterator[Admin]:
    with Admin(commands.connection) as client:
        yield client


@pytest.fixture(scope="module")
def session(browser: Browser, secure_up: UpProcess) -> StorageState:
    """The cookie of the administrator."""
    with closing(_logged_in(browser, secure_up, "admin", password_of(secure_up))) as context:
        return context.storage_state()


def _logged_in(browser: Browser, up: UpProcess, user: str, password: str) -> BrowserContext:
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    page.goto(f"{up.http}/ui/topics")
    log_in(page, user, password)
    expect(page.locator("h1")).to_have_text("Topics")
    return context


@pytest.fixture
def as_user(browser: Browser, secure_up: UpProcess, session: StorageState) -> Iterator[As]:
    """Log in as a user, by default as the administrator; what a Reader notices is checked in the end."""
    readers: list[Reader] = []

    def enter(user: str = "", password: str = "", width: int = 1280) -> Reader:
        if user:
            context = _logged_in(browser, secure_up, user, password)
        else:
            context = browser.new_context(storage_state=session, ignore_https_errors=True)
        context.set_default_timeout(TIMEOUT_MS)
        page = context.pages[0] if context.pages else context.new_page()
        page.set_viewport_size({"width": width, "height": 800})
        readers.append(Reader(page, secure_up.http))
        return readers[-1]

    yield enter
    for reader in readers:
        reader.check()
        reader.page.context.close()


def row(page: Page, text: str) -> Locator:
    return page.locator("tbody tr").filter(has_text=text)


def field(where: Page | Locator, name: str) -> Locator:
    return where.get_by_role("spinbutton" if name == "Value" else "textbox", name=name, exact=True)


def choice(where: Page | Locator, name: str) -> Locator:
    return where.get_by_role("combobox", name=name, exact=True)


# -- users -----------------------------------------------------------------------------------------


def test_a_user_is_added_changed_and_removed(as_user: As, admin: Admin) -> None:
    reader = as_user()
    urls: list[str] = []
    reader.page.on("request", lambda request: urls.append(unquote(request.url)))
    page = reader.open("/ui/users")
    expect(row(page, "admin")).to_contain_text("you")

    dialog = reader.dialog("Add user")
    field(dialog, "Name").fill("carol")
    dialog.get_by_label("Password").fill(SECRET)
    dialog.get_by_label("The same again").fill("something else")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog).to_be_visible()  # the browser does not send it
    dialog.get_by_label("The same again").fill(SECRET)
    choice(dialog, "Mechanisms").select_option("both")
    dialog.get_by_role("button", name="Add").click()
    expect(page.locator("#toast")).to_have_text("The user is added")
    expect(row(page, "carol")).to_contain_text("SCRAM-SHA-256")
    assert len(admin.describe_user("carol").credentials) == 2
    assert page.evaluate("[...document.querySelectorAll('[type=password]')].every((each) => !each.value)")

    reader.dialog("Add user")
    field(dialog, "Name").fill("carol")
    for label in ("Password", "The same again"):
        dialog.get_by_label(label).fill(SECRET)
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_role("alert")).to_contain_text("user carol exists already")
    reader.forgive(409)
    page.keyboard.press("Escape")

    dialog = reader.dialog("Change the password of carol")
    for label in ("Password", "The same again"):
        dialog.get_by_label(label).fill(f"{SECRET}-2")
    dialog.get_by_role("button", name="Change").click()
    expect(page.locator("#toast")).to_have_text("The password is changed")
    as_user("carol", f"{SECRET}-2")

    dialog = reader.dialog("Remove user carol")
    expect(dialog.get_by_role("button", name="Remove the user")).to_be_disabled()
    dialog.get_by_role("textbox").fill("carol")
    dialog.get_by_role("button", name="Remove the user").click()
    expect(row(page, "carol")).to_have_count(0)
    assert [each.name for each in admin.list_users()] == ["admin"]

    assert not [each for each in urls if SECRET in each]
    assert SECRET not in page.content()


def test_a_request_without_the_token_of_the_session_changes_nothing(as_user: As, admin: Admin) -> None:
    reader = as_user()
    page = reader.open("/ui/users")
    body = '{"name": "eve", "password": "x"}'
    status = page.evaluate(
        """async (body) => (await fetch("/api/v1/users",
        {method: "POST", headers: {"content-type": "application/json"}, body})).status""",
        body,
    )
    reader.forgive(403)
    assert status == 403
    assert "eve" not in {each.name for each in admin.list_users()}


# -- ACLs ------------------------------------------------------------------------------------------


def test_acls_are_created_by_operation_found_and_removed(as_user: As, admin: Admin) -> None:
    reader = as_user()
    page = reader.open("/ui/acls")
    dialog = reader.dialog("Create ACLs")
    create = dialog.get_by_role("button", name="Create")
    expect(dialog.get_by_label("CLUSTER_ACTION")).not_to_be_visible()
    field(dialog, "Principal").fill("dave")
    field(dialog, "Name").fill("team.")
    choice(dialog, "Pattern").select_option("PREFIXED")
    create.click()
    expect(dialog.get_by_role("alert")).to_have_text("select at least one operation")
    dialog.get_by_role("button", name="Producer").click()
    create.click()
    expect(page.locator("#toast")).to_have_text("The ACLs are created")
    made = admin.list_acls(AclFilter(principal="User:dave"))
    assert [(each.entry.operation.name, each.pattern.pattern_type.name) for each in made] == [
        ("WRITE", "PREFIXED"),
        ("CREATE", "PREFIXED"),
        ("DESCRIBE", "PREFIXED"),
    ]

    reader.dialog("Create ACLs")
    field(dialog, "Principal").fill("User:dave")
    choice(dialog, "Permission").select_option("DENY")
    choice(dialog, "Resource").select_option("CLUSTER")
    expect(field(dialog, "Name")).to_have_value("kafka-cluster")
    expect(dialog.get_by_role("button", name="Producer")).not_to_be_visible()
    field(dialog, "Host").fill("10.0.0.7")
    dialog.get_by_label("ALTER", exact=True).check()
    create.click()
    expect(row(page, "kafka-cluster")).to_contain_text("DENY ALTER from 10.0.0.7")

    reader.open("/ui/acls?principal=dave&type=TOPIC&name=team.orders")
    expect(page.locator(".effective")).to_contain_text("WRITE: allowed")
    expect(page.locator(".effective")).to_contain_text("READ: no ACL")
    reader.open("/ui/acls")
    choice(page, "Group by").select_option("resource")
    expect(row(page, "prefixed")).to_have_count(1)
    expect(page.locator("tr.group").filter(has_text="kafka-cluster")).to_have_count(1)
    field(page, "Named").fill("nothing-else")
    expect(page.get_by_text("No ACL matches")).to_be_visible()
    field(page, "Named").fill("")

    dialog = reader.dialog("Remove DENY ALTER of User:dave on CLUSTER kafka-cluster")
    expect(dialog).to_contain_text("10.0.0.7")
    dialog.get_by_role("button", name="Remove the ACL").click()
    expect(page.locator("#toast")).to_have_text("The ACL is removed")
    expect(row(page, "kafka-cluster")).to_have_count(0)
    assert admin.list_acls(AclFilter(principal="User:dave")) == made
    admin.delete_acls([AclFilter(principal="User:dave")])


def test_names_in_acls_are_text_at_every_width(as_user: As, commands: Secured) -> None:
    principal = f"User:{HOSTILE}"
    for name in (HOSTILE, "n" * 200):
        commands.ok("acl", "allow", principal, "--group", name, "--host", "2001:db8:85a3::8a2e:370:7334")
    for width in (1280, 375):
        reader = as_user(width=width)
        for path in (
            "/ui/acls",
            "/ui/acls?sort=resource",
            f"/ui/acls?principal={'p' * 300}",
            f"/ui/acls?q={'q' * 300}",
            f"/ui/users?q={'q' * 300}",
        ):
            page = reader.open(path)
            wide = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert wide <= 0, (path, width)
            assert reader.cut() == [], (path, width)
            assert reader.nameless() == [], path
            assert reader.unspoken() == [], path
            assert reader.unreadable() == [], path
        reader.open("/ui/acls")
        expect(page.locator("tr.group").filter(has_text=HOSTILE)).to_have_count(1)
        dialog = reader.dialog(f"Remove ALLOW ALL of {principal} on GROUP {HOSTILE}")
        assert dialog.evaluate("(each) => each.scrollWidth - each.clientWidth") <= 0
    dialog.get_by_role("button", name="Remove the ACL").click()
    expect(page.locator("#toast")).to_have_text("The ACL is removed")
    commands.ok("acl", "remove", "--principal", principal, "--yes")


# -- quotas ----------------------------------------------------------------------------------------


def test_quotas_are_set_changed_and_removed(as_user: As, admin: Admin) -> None:
    reader = as_user()
    page = reader.open("/ui/quotas")
    expect(page.get_by_text("There is no quota yet")).to_be_visible()
    dialog = reader.dialog("Set quota")
    choice(dialog, "Of").select_option("a client id of a user")
    field(dialog, "User").fill("erin")
    dialog.get_by_label("every client id without").check()
    expect(field(dialog, "Client id")).to_be_disabled()
    choice(dialog, "Quota").select_option("consumer_byte_rate")
    field(dialog, "Value").fill("1500000")
    dialog.get_by_role("button", name="Set").click()
    expect(row(page, "erin")).to_contain_text("1,500,000")
    entity = {"user": "erin", "client-id": None}
    assert [(each.entity, each.quotas) for each in admin.list_quotas()] == [
        (entity, {"consumer_byte_rate": 1.5e6})
    ]

    reader.dialog("Set quota")
    choice(dialog, "Of").select_option("an IP address")
    expect(choice(dialog, "Quota")).to_have_value("connection_creation_rate")
    field(dialog, "IP address").fill("not an address")
    field(dialog, "Value").fill("20")
    dialog.get_by_role("button", name="Set").click()
    expect(dialog.get_by_role("alert")).to_contain_text("not an address")
    reader.forgive(400)
    page.keyboard.press("Escape")

    name = "consumer_byte_rate of user erin, client-id <default>"
    dialog = reader.dialog(f"Change {name}")
    expect(field(dialog, "Value")).to_have_value("1500000")
    field(dialog, "Value").fill("0.5")
    dialog.get_by_role("button", name="Set").click()
    expect(dialog.get_by_role("alert")).to_contain_text("consumer_byte_rate")
    reader.forgive(400)
    field(dialog, "Value").fill("500")
    dialog.get_by_role("button", name="Set").click()
    expect(row(page, "erin")).to_contain_text("500")
    dialog = reader.dialog(f"Remove {name}")
    dialog.get_by_role("button", name="Remove the quota").click()
    expect(page.get_by_text("There is no quota yet")).to_be_visible()
    assert admin.list_quotas() == []


# -- who may not -----------------------------------------------------------------------------------


def test_who_may_not_see_a_page_is_told_what_is_missing(as_user: As, commands: Secured, admin: Admin) -> None:
    admin.create_user("frank", SECRET)
    reader = as_user("frank", SECRET)
    pages = {
        "/ui/users": ("Users", "describe"),
        "/ui/acls": ("ACLs", "describe"),
        "/ui/quotas": ("Quotas", "describe-configs"),
    }
    given = set()
    for path, (heading, operation) in pages.items():
        page = reader.open(path)
        expect(page.locator("h1")).to_have_text(heading)
        given.add(page.locator(".empty pre").inner_text())
        assert f"headrace acl allow User:frank --cluster --operation {operation}" in given
    reader.forgive(403)
    for command in given:
        commands.ok(*command.split()[1:])
    for path in pages:
        reader.open(path)
        expect(page.get_by_text("You may not see this")).to_have_count(0)

    reader.open("/ui/users")
    dialog = reader.dialog("Remove user frank")
    dialog.get_by_role("textbox").fill("frank")
    dialog.get_by_role("button", name="Remove the user").click()
    expect(dialog.get_by_role("alert")).to_contain_text("lacks the permission ALTER on CLUSTER")
    reader.forgive(403)
    admin.remove_user("frank")
    admin.delete_acls([AclFilter(principal="User:frank")])


def test_without_an_authorizer_the_page_says_how_to_configure_one(reader: Reader) -> None:
    page = reader.open("/ui/acls")
    expect(page.get_by_text("No authorizer is configured")).to_be_visible()
    expect(page.locator(".empty")).to_contain_text("authorizer.class.name=org.apache.kafka.metadata")
