// postgres.js against the gateway: what it finds and is told, a line each.
const postgres = require("postgres");

async function main(port, password, slow) {
  const said = [];
  const login = { host: "127.0.0.1", port, username: "ann", password, database: "register" };
  const sql = postgres({ ...login, onnotice: (notice) => said.push(notice.message) });
  const regions = ["North", "South"];
  const within = (await sql`select count(*) from people where region in ${sql(regions)} and age > ${30}`)[0].count;
  const among = (await sql`select count(*) from people where region = any(${regions}) and age > ${30}`)[0].count;
  const outside = (await sql`select count(*) from people where region <> all(${regions})`)[0].count;
  const east = (await sql`select count(*) from people where region = ${"East"}`)[0].count;
  console.log("lists", within === among, outside === east, east > 0);
  const groups = await sql`select ${sql(["region"])}, sum(income) from ${sql("people")} group by 1 order by 1`;
  console.log("groups", groups.map((group) => group.region + ":" + typeof group.sum).join(" "));
  const described = await sql`select region, count(*), 1 + 1 from people where age > ${1} group by 1`.describe();
  console.log("described", described.columns.map((column) => column.name).join(" "));
  let rows = 0;
  await sql`select n from numbers`.cursor(50000, (some) => { rows += some.length; });
  console.log("cursor", rows);
  console.log("several", (await sql`select 1 as one; select 2 as two`.simple()).map((found) => found.length).join(" "));
  const preview = await sql`select * from people limit ${1}`;
  console.log("preview", preview[0].region, said[0].slice(0, 9));
  await sql.begin("read only", async (asked) => {
    await asked.savepoint((inner) => inner`select * from people`).catch((error) => console.log("refused", error.code));
    console.log("within", (await asked`select count(*) from people`)[0].count > 0);
  });
  const long = sql.unsafe(slow);
  setTimeout(() => long.cancel(), 500);
  await long.catch((error) => console.log("cancelled", error.code));
  await sql`insert into people ${sql({ person_id: 1 })}`.catch((error) => console.log("read only", error.code));
  console.log("goes on", (await sql`select 1 as one`)[0].one);
  await sql.end();
}

main(Number(process.argv[2]), process.argv[3], process.argv[4]);
