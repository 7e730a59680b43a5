// TypeORM against the gateway: what it finds and is told, a line each.
require("reflect-metadata");
const { DataSource, EntitySchema, In, MoreThan } = require("typeorm");

async function main(port, password) {
  const number = { type: "int", nullable: true }, text = { type: "varchar", nullable: true };
  const columns = { person_id: { type: "bigint", primary: true }, region: text, sex: text, age: number, income: number };
  const entities = [new EntitySchema({ name: "people", tableName: "people", columns })];
  const login = { host: "127.0.0.1", port, username: "ann", password, database: "register" };
  const db = await new DataSource({ type: "postgres", ...login, entities }).initialize();
  const people = db.getRepository("people");
  const look = db.createQueryRunner();
  console.log("place", await look.getCurrentDatabase(), await look.getCurrentSchema());
  const table = await look.getTable("people");
  console.log("columns", table.columns.map((column) => column.name + ":" + column.type).join(" "));
  console.log("there", await look.hasTable("people"), await look.hasColumn("people", "region"), await look.hasTable("secrets"));
  await look.release();
  const counted = await people.countBy({ region: In(["North", "South"]), age: MoreThan(30) });
  const [{ count }] = await db.query("SELECT count(*) FROM people WHERE region IN ($1,$2) AND age > $3", ["North", "South", 30]);
  console.log("count", counted === Number(count), counted > 0);
  console.log("sum", (await people.sum("income")) > 0, (await people.average("income", { sex: "f" })) > 0);
  const asked = people.createQueryBuilder("p").select("p.region", "region").addSelect("COUNT(*)", "n").groupBy("p.region");
  console.log("groups", (await asked.getRawMany()).map((group) => group.region).sort().join(" "));
  const among = people.createQueryBuilder("p").where("p.region = ANY(:regions)", { regions: ["North", "South"] });
  console.log("among", (await among.getCount()) === (await people.countBy({ region: In(["North", "South"]) })));
  console.log("preview", (await people.find({ take: 1 }))[0].region);
  await db.transaction("REPEATABLE READ", async (manager) => console.log("within", (await manager.count("people")) > 0));
  await people.findBy({ age: 30 }).catch((error) => console.log("refused", error.code, error.message.slice(0, 6)));
  await db.query("DROP TABLE people").catch((error) => console.log("read only", error.code));
  console.log("goes on", (await db.query("SELECT 1 AS one"))[0].one);
  await db.destroy();
}

main(Number(process.argv[2]), process.argv[3]);
