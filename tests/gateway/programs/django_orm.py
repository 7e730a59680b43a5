"""A program with Django's models: python django_orm.py PORT PASSWORD; it prints what it found, a line each."""

from __future__ import annotations

import contextlib
import io
import sys

import django
from django.conf import settings

login = {"HOST": "127.0.0.1", "PORT": sys.argv[1], "USER": "ann", "PASSWORD": sys.argv[2], "NAME": "register"}
settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **login}}, USE_TZ=True)
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import DatabaseError, connection, models, transaction  # noqa: E402
from django.db.models import Avg, Case, Count, Q, Sum, Value, When  # noqa: E402


class People(models.Model):
    """What the gateway calls people."""

    person_id = models.BigIntegerField(primary_key=True)
    region = models.TextField()
    sex = models.TextField()
    age = models.IntegerField()
    income = models.IntegerField()

    class Meta:
        """Where it is."""

        app_label, db_table, managed = "register", "people", False


def refused(ask: object) -> str:
    """What is said to a question that has no answer."""
    try:
        ask()  # type: ignore[operator]
    except DatabaseError as problem:
        return str(problem)[:6]
    return "answered"


written = io.StringIO()
with contextlib.redirect_stdout(written):
    call_command("inspectdb")
models_found = written.getvalue()
print(
    "inspectdb", models_found.count("(models.Model)"), "Unable" in models_found, "measure: sum and avg" in models_found
)
some = People.objects.filter(region__in=["North", "South"], age__gt=30)
with connection.cursor() as cursor:
    cursor.execute("SELECT count(*) FROM people WHERE region = ANY(%s) AND age > %s", [["North", "South"], 30])
    print("count", cursor.fetchone() == (some.count(),), [column.name for column in cursor.description])
regions = People.objects.values("region").annotate(
    n=Count("person_id", distinct=True), s=Sum("income"), a=Avg("income")
)
print("groups", *sorted(f"{row['region']}:{row['n'] > 0}:{row['s'] > 0}:{row['a'] > 0}" for row in regions))
print(
    "sorted",
    len(regions.order_by("-n")[:2]),
    len(People.objects.values("age").annotate(n=Count("pk")).filter(n__gt=40)) > 0,
)
halves = Case(When(age__gte=50, then=Value("old")), default=Value("young"))
print(
    "case", *sorted(row["half"] for row in People.objects.annotate(half=halves).values("half").annotate(n=Count("pk")))
)
women = People.objects.aggregate(n=Count("pk", filter=Q(sex="f")))["n"]
print("filter", women == People.objects.filter(sex="f").count() != 0)
print("texts", People.objects.filter(region__icontains="OR").count() == People.objects.filter(region="North").count())
print("distinct", *sorted(People.objects.values_list("region", flat=True).distinct()))
print("preview", People.objects.all()[:1][0].region)
with transaction.atomic():
    with contextlib.suppress(DatabaseError), transaction.atomic():
        list(People.objects.filter(age=30))
    print("savepoint", People.objects.count() > 0)
print("refused", refused(lambda: list(People.objects.filter(age=30))))
print("exists", People.objects.filter(age__gte=30).exists(), People.objects.filter(age=999).exists())
print("read only", refused(lambda: People.objects.filter(age=30).delete()))
print("explained", regions.explain().startswith("people: 1 group keys"))
print("goes on", People.objects.count() > 0)
