// Knex against the gateway: what it finds and is told, a line each.
const { knex } = require("knex");

async function main(port, password) {
  const connection = { host: "127.0.0.1", port, user: "ann", password, database: "register" };
  const db = knex({ client: "pg", connection });
  const columns = await db("people").columnInfo();
  console.log("columns", Object.entries(columns).map(([name, kind]) => name + ":" + kind.type).sort().join(" "));
  console.log("there", await db.schema.hasTable("people"), await db.schema.hasColumn("people", "region"), await db.schema.hasTable("secrets"));
  const [{ n }] = await db("people").count("* as n").whereIn("region", ["North", "South"]).where("age", ">", 30);
  const plain = await db.raw("select count(*) from people where region = any(?) and age > ?", [["North", "South"], 30]);
  console.log("count", n === plain.rows[0].count, n > 0);
  const [{ count }] = await db("people").countDistinct("person_id");
  console.log("units", count === (await db("people").count())[0].count);
  const groups = await db("people").select("region").sum("income").groupBy("region").orderBy("region");
  console.log("groups", groups.map((group) => group.region + ":" + typeof group.sum).join(" "));
  console.log("with", (await db.with("w", db("people").distinct("region")).select("*").from("w")).length);
  console.log("preview", (await db("people").first()).region);
  await db.transaction(async (asked) => console.log("within", (await asked("people").count())[0].count > 0), { readOnly: true });
  await db("people").where("age", 30).catch((error) => console.log("refused", error.code));
  await db("people").insert({ person_id: 1 }).catch((error) => console.log("read only", error.code));
  console.log("goes on", (await db.raw("select 1 as one")).rows[0].one);
  await db.destroy();
}

main(Number(process.argv[2]), process.argv[3]);
