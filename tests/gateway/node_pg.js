// A program with the client `pg` of Node.js: node node_pg.js PORT PASSWORD SLOW; it prints what it found, a line each.
const { Client, Pool, Query } = require("pg");

async function main(port, password, slow) {
  const login = { host: "127.0.0.1", port, user: "ann", password, database: "register" };
  const client = new Client(login);
  await client.connect();
  const kinds = (await client.query("SELECT a_bool, a_small, a_decimal, a_text, nothing FROM kinds")).rows[0];
  console.log("kinds", JSON.stringify(kinds));
  const listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = $1 ORDER BY 1";
  console.log("tables", (await client.query(listed, ["public"])).rows.map((row) => row.table_name).join(" "));
  const described = await client.query("SELECT * FROM people WHERE false");
  console.log("columns", described.fields.map((field) => field.name + ":" + field.dataTypeID).join(" "));
  const asked = "SELECT count(*) AS n FROM people WHERE region = $1 AND age > $2";
  const bound = (await client.query(asked, ["North", 30])).rows[0].n;
  const written = (await client.query(asked.replace("$1", "'North'").replace("$2", "30"))).rows[0].n;
  console.log("parameters", bound === written);
  const named = { name: "numbers", text: "SELECT n FROM numbers WHERE n < $1 ORDER BY n", values: [3] };
  for (let time = 0; time < 2; time++) {
    console.log("prepared", JSON.stringify((await client.query(named)).rows));
  }
  await client.query("SELECT * FROM people").catch((error) => console.log("refused", error.code, error.message.slice(0, 6)));
  console.log("rows", (await client.query("SELECT * FROM numbers")).rowCount);
  const long = new Query(slow);
  const stopped = new Promise((resolve) => long.on("error", (error) => resolve(error.code)));
  client.query(long);
  setTimeout(() => new Client(login).cancel(client, long), 500);
  console.log("cancelled", await stopped);
  console.log("goes on", (await client.query("SELECT 1 AS one")).rows[0].one);

  const leaving = new Query("SELECT a.n FROM numbers a, numbers b");
  client.on("error", () => {});
  leaving.on("error", () => {});
  await new Promise((resolve) => {
    leaving.once("row", resolve);
    client.query(leaving);
  });
  client.connection.stream.destroy();
  console.log("left");

  const pool = new Pool({ ...login, max: 5 });
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => pool.query("SELECT $1::int AS i", [i])));
  console.log("pool", answers.map((answer) => answer.rows[0].i).join(" "));
  await pool.end();

  const wrong = new Client({ ...login, password: "wrong password" });
  await wrong.connect().catch((error) => console.log("login", error.code));
}

main(Number(process.argv[2]), process.argv[3], process.argv[4]);
