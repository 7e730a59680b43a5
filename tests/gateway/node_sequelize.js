// Sequelize against the gateway: what it finds and is told, a line each.
const { Op, DataTypes, QueryTypes, Sequelize } = require("sequelize");

async function main(port, password) {
  const options = { host: "127.0.0.1", port, dialect: "postgres", logging: false };
  const db = new Sequelize("register", "ann", password, options);
  await db.authenticate();
  const kinds = { person_id: { type: DataTypes.BIGINT, primaryKey: true }, region: DataTypes.STRING, sex: DataTypes.STRING,
    age: DataTypes.INTEGER, income: DataTypes.INTEGER };
  const People = db.define("people", kinds, { tableName: "people", timestamps: false });
  const look = db.getQueryInterface();
  console.log("tables", (await look.showAllTables()).sort().join(" "));
  const columns = await look.describeTable("people");
  console.log("columns", Object.entries(columns).map(([name, kind]) => name + ":" + kind.type).join(" "));
  console.log("comment", columns.income.comment);
  console.log("there", await look.tableExists("people"), (await look.showIndex("people")).length);
  const counted = await People.count({ where: { region: ["North", "South"], age: { [Op.gt]: 30 } } });
  const plain = "SELECT count(*)::int AS n FROM people WHERE region IN ($1,$2) AND age > $3";
  const [{ n }] = await db.query(plain, { bind: ["North", "South", 30], type: QueryTypes.SELECT });
  console.log("count", counted === n, n > 0);
  const units = await People.count({ distinct: true, col: "person_id" });
  console.log("units", units === (await People.count()));
  const groups = await People.count({ group: ["region"] });
  console.log("groups", groups.map((group) => group.region + ":" + typeof group.count).sort().join(" "));
  console.log("sum", (await People.sum("income")) > 0);
  console.log("preview", (await People.findOne()).region);
  await db.transaction({ readOnly: true }, async (transaction) => console.log("within", (await People.count({ transaction })) > 0));
  await People.findAll({ where: { age: 30 } }).catch((error) => console.log("refused", error.message.slice(0, 6)));
  await People.create({ person_id: 1 }).catch((error) => console.log("read only", error.message.slice(0, 21)));
  console.log("goes on", (await db.query("SELECT 1 AS one", { type: QueryTypes.SELECT }))[0].one);
  await db.close();
}

main(Number(process.argv[2]), process.argv[3]);
