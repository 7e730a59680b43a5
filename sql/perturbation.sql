-- Cell-key perturbation (CKM) of counts and magnitudes, as macros over ordinary aggregates.
--
-- Pure SQL: `.read` this file in a plain DuckDB shell (1.5 or later) and everything below works there,
-- without Python. Only a p-table has to be made elsewhere; two are built in and
-- `sdc_store_ptable` of the Python package writes more of them into the database file.
--
-- Method: Thompson, Broadfoot & Elazar (2013); Giessing & Tent (2019). A record carries a stored integer key;
-- the key of a cell is the sum of its records' keys modulo 10^digits; the p-table turns (cell value, cell key)
-- into noise. Integer sums are exact, so a cell gets the same noise in every query, on any number of threads.
--
-- Macros whose name begins with `_sdc_` are internal: their signatures may change. A macro's arguments are put into its
-- body as text, so the variables of its lambdas have names of their own: an argument must not meet one by accident.

-- What a p-table looks like as constants. A generated macro per aspect maps a name to constants, so that the
-- planner folds them into the query: no join, no subquery, nothing read at run time.
--   _sdc_ptable_kind(p) ..    one macro a number of the layout, which `sdcduck/methods/perturbation/lookup.py` defines:
--                             as one struct, every use of a number would cost the planner all of them
--   _sdc_ptable_guide(p)      one character a (row, key bucket): the noise, or '!' where the bucket holds a border
--   _sdc_ptable_intervals(p)  the exact intervals, row after row, consulted only for '!' buckets
-- They stand below for the built-in p-tables; `sdc_store_ptable` writes them anew. Everything else begins after them.

-- Built-in p-tables: written by `make ptables`, not by hand.
CREATE SCHEMA IF NOT EXISTS sdc;
CREATE TABLE IF NOT EXISTS sdc.settings (name VARCHAR NOT NULL, value VARCHAR NOT NULL);
CREATE TABLE IF NOT EXISTS sdc.ptables (
    name VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    modulus BIGINT NOT NULL,
    step INTEGER NOT NULL,
    repeat INTEGER NOT NULL,
    origin VARCHAR NOT NULL
);
CREATE TABLE IF NOT EXISTS sdc.ptable_intervals (
    name VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    i DOUBLE NOT NULL,
    v DOUBLE NOT NULL,
    lb BIGINT NOT NULL,
    ub BIGINT NOT NULL
);
INSERT INTO sdc.ptable_intervals SELECT * FROM (VALUES
    ('default', 'all', 0, 0, 0, 100000000),
    ('default', 'all', 1, 1, 0, 12209348),
    ('default', 'all', 1, 3, 12209348, 14814154),
    ('default', 'all', 1, 4, 14814154, 16017297),
    ('default', 'all', 1, -1, 16017297, 34911080),
    ('default', 'all', 1, 2, 34911080, 40550495),
    ('default', 'all', 1, 0, 40550495, 59444277),
    ('default', 'all', 1, -1, 59444277, 79444277),
    ('default', 'all', 1, 5, 79444277, 80000000),
    ('default', 'all', 1, 0, 80000000, 100000000),
    ('default', 'all', 2, -1, 0, 20000000),
    ('default', 'all', 2, 5, 20000000, 20171267),
    ('default', 'all', 2, 4, 20171267, 21126185),
    ('default', 'all', 2, -2, 21126185, 36840574),
    ('default', 'all', 2, -1, 36840574, 40930772),
    ('default', 'all', 2, 3, 40930772, 44654285),
    ('default', 'all', 2, 2, 44654285, 54808202),
    ('default', 'all', 2, 0, 54808202, 74808202),
    ('default', 'all', 2, 1, 74808202, 94172798),
    ('default', 'all', 2, 0, 94172798, 100000000),
    ('default', 'all', 3, 4, 0, 592786),
    ('default', 'all', 3, -1, 592786, 2728086),
    ('default', 'all', 3, -1, 2728086, 22728086),
    ('default', 'all', 3, 0, 22728086, 42728086),
    ('default', 'all', 3, -2, 42728086, 53772975),
    ('default', 'all', 3, 5, 53772975, 53842493),
    ('default', 'all', 3, 2, 53842493, 64268894),
    ('default', 'all', 3, 0, 64268894, 71910012),
    ('default', 'all', 3, 1, 71910012, 73416622),
    ('default', 'all', 3, 1, 73416622, 93416622),
    ('default', 'all', 3, 3, 93416622, 96566133),
    ('default', 'all', 3, -3, 96566133, 100000000),
    ('default', 'all', 4, 1, 0, 20000000),
    ('default', 'all', 4, -3, 20000000, 23029327),
    ('default', 'all', 4, 1, 23029327, 24938363),
    ('default', 'all', 4, -1, 24938363, 44938363),
    ('default', 'all', 4, -4, 44938363, 45472843),
    ('default', 'all', 4, 3, 45472843, 48476374),
    ('default', 'all', 4, 4, 48476374, 49004794),
    ('default', 'all', 4, 0, 49004794, 69004794),
    ('default', 'all', 4, 0, 69004794, 77121304),
    ('default', 'all', 4, -2, 77121304, 87576276),
    ('default', 'all', 4, 5, 87576276, 87632885),
    ('default', 'all', 4, 2, 87632885, 98028420),
    ('default', 'all', 4, -1, 98028420, 100000000),
    ('default', 'all', 5, 2, 0, 10384989),
    ('default', 'all', 5, -5, 10384989, 10439846),
    ('default', 'all', 5, 1, 10439846, 12404083),
    ('default', 'all', 5, -1, 12404083, 14368320),
    ('default', 'all', 5, 1, 14368320, 34368320),
    ('default', 'all', 5, 0, 34368320, 54368320),
    ('default', 'all', 5, -3, 54368320, 57348364),
    ('default', 'all', 5, -1, 57348364, 77348364),
    ('default', 'all', 5, -2, 77348364, 87733353),
    ('default', 'all', 5, 0, 87733353, 95927101),
    ('default', 'all', 5, -4, 95927101, 96446100),
    ('default', 'all', 5, 3, 96446100, 99426144),
    ('default', 'all', 5, 4, 99426144, 99945143),
    ('default', 'all', 5, 5, 99945143, 100000000)
) WHERE NOT EXISTS (FROM sdc.ptables WHERE name = 'default');
INSERT INTO sdc.ptables SELECT 'default', 'counts', 100000000, 1, 1, 'built in: counts, D = 5, V = 2, modified' WHERE NOT EXISTS (FROM sdc.ptables WHERE name = 'default');
INSERT INTO sdc.ptable_intervals SELECT * FROM (VALUES
    ('default_magnitude', 'all', 0, 0, 0, 100000000),
    ('default_magnitude', 'all', 1, 0.6, 0, 3428996),
    ('default_magnitude', 'all', 1, 5, 3428996, 3551003),
    ('default_magnitude', 'all', 1, 2, 3551003, 4457541),
    ('default_magnitude', 'all', 1, -0.8, 4457541, 16175766),
    ('default_magnitude', 'all', 1, 4.4, 16175766, 16341931),
    ('default_magnitude', 'all', 1, 2.4, 16341931, 16991057),
    ('default_magnitude', 'all', 1, 2.6, 16991057, 17544584),
    ('default_magnitude', 'all', 1, 4.2, 17544584, 17730666),
    ('default_magnitude', 'all', 1, 3, 17730666, 18139391),
    ('default_magnitude', 'all', 1, 1.6, 18139391, 19431628),
    ('default_magnitude', 'all', 1, -0.4, 19431628, 31149853),
    ('default_magnitude', 'all', 1, 1.2, 31149853, 33030024),
    ('default_magnitude', 'all', 1, 2.2, 33030024, 33795172),
    ('default_magnitude', 'all', 1, 0.2, 33795172, 39046521),
    ('default_magnitude', 'all', 1, -0.2, 39046521, 50764747),
    ('default_magnitude', 'all', 1, 1.8, 50764747, 51844318),
    ('default_magnitude', 'all', 1, 3.2, 51844318, 52198245),
    ('default_magnitude', 'all', 1, 4.8, 52198245, 52332794),
    ('default_magnitude', 'all', 1, 1, 52332794, 54618194),
    ('default_magnitude', 'all', 1, 4, 54618194, 54827652),
    ('default_magnitude', 'all', 1, 0.4, 54827652, 59060245),
    ('default_magnitude', 'all', 1, 3.8, 59060245, 59297227),
    ('default_magnitude', 'all', 1, 2.8, 59297227, 59771657),
    ('default_magnitude', 'all', 1, 0.8, 59771657, 62563894),
    ('default_magnitude', 'all', 1, 1.4, 62563894, 64118632),
    ('default_magnitude', 'all', 1, 0, 64118632, 75836858),
    ('default_magnitude', 'all', 1, -0.6, 75836858, 87555084),
    ('default_magnitude', 'all', 1, -1, 87555084, 99273310),
    ('default_magnitude', 'all', 1, 3.6, 99273310, 99542808),
    ('default_magnitude', 'all', 1, 4.6, 99542808, 99691948),
    ('default_magnitude', 'all', 1, 3.4, 99691948, 100000000),
    ('default_magnitude', 'all', 3, 2.8, 0, 162761),
    ('default_magnitude', 'all', 3, -2.2, 162761, 893031),
    ('default_magnitude', 'all', 3, -1.6, 893031, 3144342),
    ('default_magnitude', 'all', 3, 1.6, 3144342, 5371220),
    ('default_magnitude', 'all', 3, 0.2, 5371220, 13154677),
    ('default_magnitude', 'all', 3, 4.6, 13154677, 13154899),
    ('default_magnitude', 'all', 3, 1.4, 13154899, 16153356),
    ('default_magnitude', 'all', 3, 1, 16153356, 20981042),
    ('default_magnitude', 'all', 3, 3.8, 20981042, 20987238),
    ('default_magnitude', 'all', 3, -0.8, 20987238, 26791514),
    ('default_magnitude', 'all', 3, 2.6, 26791514, 27069407),
    ('default_magnitude', 'all', 3, 3.6, 27069407, 27082301),
    ('default_magnitude', 'all', 3, -1.8, 27082301, 28691608),
    ('default_magnitude', 'all', 3, 2.4, 28691608, 29147662),
    ('default_magnitude', 'all', 3, 4.8, 29147662, 29147750),
    ('default_magnitude', 'all', 3, -0.4, 29147750, 36497626),
    ('default_magnitude', 'all', 3, -0.2, 36497626, 44291707),
    ('default_magnitude', 'all', 3, -2, 44291707, 45397452),
    ('default_magnitude', 'all', 3, -1, 45397452, 50258177),
    ('default_magnitude', 'all', 3, -2.6, 50258177, 50541041),
    ('default_magnitude', 'all', 3, -3, 50541041, 50634565),
    ('default_magnitude', 'all', 3, 4, 50634565, 50637427),
    ('default_magnitude', 'all', 3, -1.4, 50637427, 53664653),
    ('default_magnitude', 'all', 3, 3, 53664653, 53756283),
    ('default_magnitude', 'all', 3, 0.6, 53756283, 60391125),
    ('default_magnitude', 'all', 3, 3.2, 60391125, 60440708),
    ('default_magnitude', 'all', 3, 0, 60440708, 68385132),
    ('default_magnitude', 'all', 3, -2.8, 68385132, 68551032),
    ('default_magnitude', 'all', 3, 0.8, 68551032, 74323725),
    ('default_magnitude', 'all', 3, 1.2, 74323725, 78204444),
    ('default_magnitude', 'all', 3, 4.2, 78204444, 78205714),
    ('default_magnitude', 'all', 3, 0.4, 78205714, 85535566),
    ('default_magnitude', 'all', 3, 3.4, 85535566, 85561356),
    ('default_magnitude', 'all', 3, -0.6, 85561356, 92223405),
    ('default_magnitude', 'all', 3, -1.2, 92223405, 96136015),
    ('default_magnitude', 'all', 3, 1.8, 96136015, 97725686),
    ('default_magnitude', 'all', 3, 2, 97725686, 98816450),
    ('default_magnitude', 'all', 3, 2.2, 98816450, 99535844),
    ('default_magnitude', 'all', 3, 5, 99535844, 99535877),
    ('default_magnitude', 'all', 3, -2.4, 99535877, 99999457),
    ('default_magnitude', 'all', 3, 4.4, 99999457, 100000000),
    ('default_magnitude', 'all', 5, -1, 0, 4839416),
    ('default_magnitude', 'all', 5, -4.6, 4839416, 4839619),
    ('default_magnitude', 'all', 5, -2.6, 4839619, 5111285),
    ('default_magnitude', 'all', 5, 2.6, 5111285, 5382951),
    ('default_magnitude', 'all', 5, -0.4, 5382951, 12748329),
    ('default_magnitude', 'all', 5, 3.4, 12748329, 12772975),
    ('default_magnitude', 'all', 5, -2.2, 12772975, 13482479),
    ('default_magnitude', 'all', 5, -1.4, 13482479, 16477042),
    ('default_magnitude', 'all', 5, 1.8, 16477042, 18056061),
    ('default_magnitude', 'all', 5, -3, 18056061, 18144701),
    ('default_magnitude', 'all', 5, 2.2, 18144701, 18854205),
    ('default_magnitude', 'all', 5, -3.4, 18854205, 18878851),
    ('default_magnitude', 'all', 5, 2.4, 18878851, 19326751),
    ('default_magnitude', 'all', 5, 2.8, 19326751, 19485065),
    ('default_magnitude', 'all', 5, -0.8, 19485065, 25278889),
    ('default_magnitude', 'all', 5, -1.8, 25278889, 26857908),
    ('default_magnitude', 'all', 5, 1.4, 26857908, 29852471),
    ('default_magnitude', 'all', 5, 5, 29852471, 29852501),
    ('default_magnitude', 'all', 5, -2, 29852501, 30932335),
    ('default_magnitude', 'all', 5, 3.6, 30932335, 30944573),
    ('default_magnitude', 'all', 5, 0, 30944573, 38923387),
    ('default_magnitude', 'all', 5, -1.2, 38923387, 42807117),
    ('default_magnitude', 'all', 5, 3.8, 42807117, 42812957),
    ('default_magnitude', 'all', 5, -0.6, 42812957, 49477432),
    ('default_magnitude', 'all', 5, -5, 49477432, 49477462),
    ('default_magnitude', 'all', 5, 0.6, 49477462, 56141937),
    ('default_magnitude', 'all', 5, 4.2, 56141937, 56143116),
    ('default_magnitude', 'all', 5, 1.6, 56143116, 58361549),
    ('default_magnitude', 'all', 5, 4.4, 58361549, 58362048),
    ('default_magnitude', 'all', 5, -4.8, 58362048, 58362127),
    ('default_magnitude', 'all', 5, 1, 58362127, 63201543),
    ('default_magnitude', 'all', 5, -0.2, 63201543, 71022366),
    ('default_magnitude', 'all', 5, 0.4, 71022366, 78387744),
    ('default_magnitude', 'all', 5, -3.6, 78387744, 78399982),
    ('default_magnitude', 'all', 5, 4, 78399982, 78402658),
    ('default_magnitude', 'all', 5, -4.4, 78402658, 78403157),
    ('default_magnitude', 'all', 5, -1.6, 78403157, 80621590),
    ('default_magnitude', 'all', 5, 3.2, 80621590, 80669274),
    ('default_magnitude', 'all', 5, 0.2, 80669274, 88490097),
    ('default_magnitude', 'all', 5, 4.8, 88490097, 88490176),
    ('default_magnitude', 'all', 5, 3, 88490176, 88578816),
    ('default_magnitude', 'all', 5, -3.2, 88578816, 88626500),
    ('default_magnitude', 'all', 5, 1.2, 88626500, 92510230),
    ('default_magnitude', 'all', 5, -2.4, 92510230, 92958130),
    ('default_magnitude', 'all', 5, -4, 92958130, 92960806),
    ('default_magnitude', 'all', 5, -2.8, 92960806, 93119120),
    ('default_magnitude', 'all', 5, 4.6, 93119120, 93119323),
    ('default_magnitude', 'all', 5, 0.8, 93119323, 98913147),
    ('default_magnitude', 'all', 5, -3.8, 98913147, 98918987),
    ('default_magnitude', 'all', 5, -4.2, 98918987, 98920166),
    ('default_magnitude', 'all', 5, 2, 98920166, 100000000)
) WHERE NOT EXISTS (FROM sdc.ptables WHERE name = 'default_magnitude');
INSERT INTO sdc.ptables SELECT 'default_magnitude', 'magnitudes', 100000000, 5, 1, 'built in: magnitudes, D = 5, V = 1, step = 5, icat = 1, 3, 5, modified' WHERE NOT EXISTS (FROM sdc.ptables WHERE name = 'default_magnitude');
CREATE MACRO IF NOT EXISTS _sdc_ptable_kind(p) AS
    CASE p
        WHEN 'default' THEN 'counts'
        WHEN 'default_magnitude' THEN 'magnitudes'
        ELSE error('unknown p-table ''' || coalesce(p, 'NULL') || '''; stored: ' || 'default, default_magnitude' || ' (see sdc_store_ptable)')
    END;
CREATE MACRO IF NOT EXISTS _sdc_ptable_modulus(p) AS
    CASE p
        WHEN 'default' THEN 100000000::BIGINT
        WHEN 'default_magnitude' THEN 100000000::BIGINT
        ELSE NULL
    END;
CREATE MACRO IF NOT EXISTS _sdc_ptable_shift(p) AS
    CASE p
        WHEN 'default' THEN 17::BIGINT
        WHEN 'default_magnitude' THEN 17::BIGINT
        ELSE NULL
    END;
CREATE MACRO IF NOT EXISTS _sdc_ptable_buckets(p) AS
    CASE p
        WHEN 'default' THEN 763::BIGINT
        WHEN 'default_magnitude' THEN 763::BIGINT
        ELSE NULL
    END;
CREATE MACRO IF NOT EXISTS _sdc_ptable_last(p) AS
    CASE p
        WHEN 'default' THEN 5::BIGINT
        WHEN 'default_magnitude' THEN 0::BIGINT
        ELSE NULL
    END;
CREATE MACRO IF NOT EXISTS _sdc_ptable_repeat(p) AS
    CASE p
        WHEN 'default' THEN 1::BIGINT
        WHEN 'default_magnitude' THEN 1::BIGINT
        ELSE NULL
    END;
CREATE MACRO IF NOT EXISTS _sdc_ptable_pitch(p) AS
    CASE p
        WHEN 'default' THEN 14::BIGINT
        WHEN 'default_magnitude' THEN 51::BIGINT
        ELSE NULL
    END;
CREATE MACRO IF NOT EXISTS _sdc_ptable_step(p) AS
    CASE p
        WHEN 'default' THEN 1::BIGINT
        WHEN 'default_magnitude' THEN 5::BIGINT
        ELSE NULL
    END;
CREATE MACRO IF NOT EXISTS _sdc_ptable_odd_first(p) AS
    CASE p
        WHEN 'default' THEN 0::BIGINT
        WHEN 'default_magnitude' THEN 0::BIGINT
        ELSE NULL
    END;
CREATE MACRO IF NOT EXISTS _sdc_ptable_last_variance(p) AS
    CASE p
        WHEN 'default' THEN 1.9999999600000002::DOUBLE
        WHEN 'default_magnitude' THEN 1.000000032::DOUBLE
        ELSE NULL
    END;
CREATE MACRO IF NOT EXISTS _sdc_ptable_rows(p) AS
    CASE p
        WHEN 'default' THEN '[]'::DOUBLE[]
        WHEN 'default_magnitude' THEN '[0, 1, 3, 5]'::DOUBLE[]
        ELSE NULL
    END;
CREATE MACRO IF NOT EXISTS _sdc_ptable_odd_rows(p) AS
    CASE p
        WHEN 'default' THEN '[]'::DOUBLE[]
        WHEN 'default_magnitude' THEN '[]'::DOUBLE[]
        ELSE NULL
    END;
CREATE MACRO IF NOT EXISTS _sdc_ptable_guide(p) AS
    CASE p
        WHEN 'default' THEN 'PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ!SSSSSSSSSSSSSSSSSSS!TTTTTTTT!OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO!RRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRR!PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP!OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO!UUU!PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO!!TTTTTTT!NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN!OOOOOOOOOOOOOOOOOOOOOOOOOOOOOO!SSSSSSSSSSSSSSSSSSSSSSSSSSS!RRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRR!PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP!QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ!PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPTTTT!OOOOOOOOOOOOOOO!OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO!PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP!NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN!RRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRR!PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP!QQQQQQQQQQQ!QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ!SSSSSSSSSSSSSSSSSSSSSSS!MMMMMMMMMMMMMMMMMMMMMMMMMMQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ!MMMMMMMMMMMMMMMMMMMMMM!QQQQQQQQQQQQQQ!OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO!LLL!SSSSSSSSSSSSSSSSSSSSSS!TTT!PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP!PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP!NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN!RRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRR!OOOOOOOOOOOOOOORRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRR!QQQQQQQQQQQQQQ!OOOOOOOOOOOOOO!QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ!PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP!MMMMMMMMMMMMMMMMMMMMMM!OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO!NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN!PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP!LLL!SSSSSSSSSSSSSSSSSSSSSS!TTT!'
        WHEN 'default_magnitude' THEN 'PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPSSSSSSSSSSSSSSSSSSSSSSSSSS!!ZZZZZZ!LLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLL!!\\\\!]]]!e!__!XXXXXXXXX!NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN!VVVVVVVVVVVVV![[[[[!QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ!OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO!YYYYYYY!``!!UUUUUUUUUUUUUUUU!d!RRRRRRRRRRRRRRRRRRRRRRRRRRRRRRR!c!^^^!TTTTTTTTTTTTTTTTTTTT!WWWWWWWWWWW!PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP!MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM!KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK!b!!aa^!EEEE!HHHHHHHHHHHHHHHH!XXXXXXXXXXXXXXXX!QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ!WWWWWWWWWWWWWWWWWWWWWW!UUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUU!LLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLL!]!GGGGGGGGGGG!\\\!NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN!OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO!FFFFFFFF!KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK!C!!IIIIIIIIIIIIIIIIIIIIII!!SSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS!!PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP!B!TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT!VVVVVVVVVVVVVVVVVVVVVVVVVVVV!RRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRR!MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM!JJJJJJJJJJJJJJJJJJJJJJJJJJJJJ!YYYYYYYYYYY!ZZZZZZZ![[[[[!DD!KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK!C!]]!NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN!EEEE!IIIIIIIIIIIIIIIIIIIIII!YYYYYYYYYYY!![[[[!!\\!!LLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLL!GGGGGGGGGGG!WWWWWWWWWWWWWWWWWWWWWW!FFFFFFF!!PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP!JJJJJJJJJJJJJJJJJJJJJJJJJJJJJ!MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM!SSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS!XXXXXXXXXXXXXXXX!UUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUUU!OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO!RRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRR!HHHHHHHHHHHHHHHH!QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ!!VVVVVVVVVVVVVVVVVVVVVVVVVVVV!DDD!!TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT!ZZZZZZZZ'
        ELSE NULL
    END;
CREATE MACRO IF NOT EXISTS _sdc_ptable_intervals(p) AS
    CASE p
        WHEN 'default' THEN '[409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 50009491457, 60678776835, 65606850564, 142995785727, 166094829570, 243483760640, 325403760639, 327680002053, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 81920002047, 82621511685, 86532855812, 150898993150, 167652444159, 182903953411, 224494397442, 306414397440, 385731782657, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 2428053508, 11174242303, 93094242303, 175014242304, 220254107646, 220538853381, 263245391874, 294543411200, 300714485761, 382634485761, 395534882819, 409600002045, 409600002045, 409600002045, 81920002049, 94328125437, 102147536897, 184067536895, 186256766972, 198559229955, 200723638276, 282643638272, 315888863232, 358712428542, 358944299013, 401524410370, 409600002047, 409600002047, 42536916994, 42761611259, 50807126017, 58852640767, 140772640769, 222692640768, 234898900989, 316818900991, 359355815934, 392917407744, 395043227644, 407249487875, 409375307780, 409600002053]'::BIGINT[]
        WHEN 'default_magnitude' THEN '[409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 409600002048, 14045169667, 14544910361, 18258089994, 66255939580, 66936551446, 69595371532, 71862618125, 72624810005, 74298947599, 79591950344, 127589799934, 135290980358, 138425026571, 159934552065, 207932405759, 212354328585, 213804013584, 214355126296, 223716124677, 224574064660, 241910765570, 242881443859, 244824709134, 256261711876, 262629918727, 310627772416, 358625626109, 406623479803, 407727343634, 408338221079, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 409600002065, 666671118, 3657857013, 12879226872, 22000519176, 53881559041, 53882468375, 66164148231, 85938350085, 85963728915, 109738043388, 110876293133, 110929106962, 117520828407, 119388825612, 119389186072, 149494278142, 181418833919, 185947965430, 205857495035, 207016105971, 207399180273, 207410903060, 219810420729, 220185737231, 247362050051, 247565142032, 280105502720, 280785029106, 304429979652, 320325404678, 320330606613, 350353680386, 350459316241, 377747068925, 393773119482, 400284411913, 404752181258, 407698819083, 407698954265, 409597777908, 409600002070, 409600002070, 409600002070, 409600002070, 409600002070, 409600002070, 409600002070, 409600002070, 409600002070, 409600002070, 409600002070, 19822249979, 19823081449, 20935825395, 22048569357, 52217157630, 52318107665, 55224236021, 67489966073, 73957627913, 74320697329, 77226825739, 77327775727, 79162374156, 79810828302, 103542331388, 110009993207, 122275723271, 122275846169, 126698846198, 126748973074, 159430195200, 175337953274, 175361873939, 202659563517, 202659686375, 229957376003, 229962205205, 239048906760, 239050950678, 239051274216, 258873522181, 290907613183, 321076201474, 321126328302, 321137289236, 321139333098, 330226034680, 330421348368, 362455439361, 362455762968, 362818832399, 363014146032, 378921904134, 380756502516, 380767463404, 381415917554, 381416749079, 405148252164, 405172172781, 405177001963, 409600002058]'::BIGINT[]
        ELSE NULL
    END;
-- End of the built-in p-tables.

-- The cell key on the scale of the p-table. Keys of 8 digits meet tables of 8 digits; longer keys are cut and
-- shorter ones padded, which is what comparing key / 10^digits with the table's bounds means.
CREATE OR REPLACE MACRO _sdc_scaled_key(key_sum, p, digits) AS
    CASE
        WHEN digits NOT BETWEEN 1 AND 18 THEN error('digits must be between 1 and 18')
        WHEN _sdc_ptable_modulus(p) <> 100000000 THEN (coalesce(key_sum, 0) % _sdc_ptable_modulus(p))::BIGINT
        WHEN digits = 8 THEN coalesce(key_sum, 0)::BIGINT % 100000000
        WHEN digits < 8 THEN (coalesce(key_sum, 0) % (10 ** digits)::BIGINT)::BIGINT * (10 ** (8 - digits))::BIGINT
        ELSE (coalesce(key_sum, 0) % (10 ** digits)::BIGINT)::BIGINT // (10 ** (digits - 8))::BIGINT
    END;

-- The exact second look: the first interval of the row, in stored order, whose upper bound lies above the key.
CREATE OR REPLACE MACRO _sdc_exact_code(p, slot, key) AS
    (list_filter(
        list_slice(
            _sdc_ptable_intervals(p),
            slot * _sdc_ptable_pitch(p) + 1,
            slot * _sdc_ptable_pitch(p) + _sdc_ptable_pitch(p)
        ),
        lambda bound: (bound >> 12) > key
    )[1] & 4095) - 2048;

CREATE OR REPLACE MACRO _sdc_guide_code(p, slot, key) AS
    ascii(substr(
        _sdc_ptable_guide(p),
        1 + slot * _sdc_ptable_buckets(p) + (key >> _sdc_ptable_shift(p)),
        1
    ));

-- Noise in units of 1 / step of the p-table, from the position of a row and a scaled key.
CREATE OR REPLACE MACRO _sdc_noise_code(p, slot, key) AS
    CASE
        WHEN _sdc_guide_code(p, slot, key) = 33 THEN _sdc_exact_code(p, slot, key)
        ELSE _sdc_guide_code(p, slot, key) - 80
    END;

-- Rows of a count table are dense (0, 1, .., last); counts beyond the last row use it again, or, in tables of the
-- ONS form, the last `repeat` rows over and over.
CREATE OR REPLACE MACRO _sdc_count_row(p, n) AS
    CASE
        WHEN n <= _sdc_ptable_last(p) THEN n
        WHEN _sdc_ptable_repeat(p) = 1 THEN _sdc_ptable_last(p)
        ELSE _sdc_ptable_last(p) - _sdc_ptable_repeat(p) + 1
            + (n - _sdc_ptable_last(p) - 1) % _sdc_ptable_repeat(p)
    END;

CREATE OR REPLACE MACRO _sdc_count_noise(n, key_sum, p, digits) AS
    CASE
        WHEN _sdc_ptable_kind(p) <> 'counts'
            THEN error('p-table ''' || p || ''' is for magnitudes; a count needs one for counts')
        ELSE _sdc_noise_code(p, _sdc_count_row(p, n), _sdc_scaled_key(key_sum, p, digits))
    END;

-- Refuses what has no defined noise, before anything is shown.
CREATE OR REPLACE MACRO _sdc_refuse_bad_keys(key_type, records, keys, key_sum, result) AS
    CASE
        WHEN key_type NOT IN ('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'HUGEINT',
                              'UTINYINT', 'USMALLINT', 'UINTEGER', 'UBIGINT')
            THEN error('record keys must be integers, not ' || key_type || ' (see sdc_record_key)')
        WHEN records <> keys
            THEN error('a record without a key: the record key is NULL somewhere (see sdc_check_keys)')
        WHEN key_sum < 0 THEN error('negative record keys: keys lie between 0 and 10^digits - 1 (see sdc_check_keys)')
        ELSE result
    END;

--| sdc_ckm_count(n, key_sum, ptable := 'default', digits := 8) -> BIGINT
--| The perturbed count of a cell whose count and key sum are already known.
--|
--| The scalar heart of `sdc_count`, for tables that were aggregated before (a materialised cube, another system).
--| Zero stays zero; a negative or NULL count is an error.
--|
--| @arg n BIGINT: number of records (or units) in the cell
--| @arg key_sum HUGEINT: exact integer sum of their record keys
--| @arg ptable VARCHAR: name of a stored p-table for counts
--| @arg digits INTEGER: number of decimal digits of the record keys
--| @example
--| SELECT sdc_ckm_count(2, 58024579) AS a_pair, sdc_ckm_count(0, 0) AS nobody;
--| @output
--| a_pair | nobody
--| -------+-------
--|      2 |      0
--| @source Giessing & Tent (2019), lookup as in R package cellKey
CREATE OR REPLACE MACRO sdc_ckm_count(n, key_sum, ptable := 'default', digits := 8) AS
    CASE
        WHEN n IS NULL OR n < 0 THEN error('sdc_ckm_count: a count is negative or NULL')
        WHEN key_sum < 0 OR (key_sum IS NULL AND n > 0) THEN error('sdc_ckm_count: a key sum is negative or NULL')
        ELSE (n + _sdc_count_noise(n::BIGINT, key_sum, ptable, digits))::BIGINT
    END;

--| sdc_cell_key(record_key, filter := true, digits := 8) -> BIGINT
--| The key of each cell: the sum of its records' keys modulo 10^digits. Confidential; for checks by the custodian.
--|
--| An aggregate: use it with GROUP BY, CUBE, ROLLUP and GROUPING SETS.
--|
--| @arg record_key integer column: keys of the records, as made by `sdc_record_key`
--| @arg filter BOOLEAN expression over the rows: which records belong to the cell (as FILTER (WHERE ..))
--| @arg digits INTEGER: number of decimal digits of the record keys
--| @example
--| SELECT region, sdc_cell_key(record_key) AS cell_key
--| FROM (VALUES ('N', 12345678), ('N', 45678901), ('S', 99999999)) people(region, record_key)
--| GROUP BY region ORDER BY region;
--| @output
--| region | cell_key
--| -------+---------
--| N      | 58024579
--| S      | 99999999
--| @source R package cellKey; integer keys instead of fractions, so that sums are exact
CREATE OR REPLACE MACRO sdc_cell_key(record_key, filter := true, digits := 8) AS
    _sdc_refuse_bad_keys(
        typeof(max(record_key)),
        count(CASE WHEN filter THEN 1 END),
        count(CASE WHEN filter THEN record_key END),
        sum(CASE WHEN filter THEN record_key END),
        (sum(CASE WHEN filter THEN record_key END) % (10 ** digits)::BIGINT)::BIGINT
    );

--| sdc_count(record_key, ptable := 'default', filter := true, digits := 8) -> BIGINT
--| The perturbed number of records in each cell: what `count(*)` becomes under the cell-key method.
--|
--| An aggregate: use it with GROUP BY, CUBE, ROLLUP, GROUPING SETS, HAVING, in views and prepared statements.
--| The same set of records gives the same number, whatever query selected it. Zero stays zero. Totals get noise of
--| their own, so a table does not add up exactly. A NULL, negative or non-integer key is an error.
--| DuckDB takes no FILTER clause on a macro: write `filter := condition`.
--|
--| @arg record_key integer column: keys of the records (INTEGER is the fastest type for 8 digits)
--| @arg ptable VARCHAR: name of a stored p-table for counts
--| @arg filter BOOLEAN expression over the rows: which records to count (as FILTER (WHERE ..))
--| @arg digits INTEGER: number of decimal digits of the record keys
--| @example
--| SELECT region, count(*) AS original, sdc_count(record_key) AS n
--| FROM (VALUES ('N', 12345678), ('N', 45678901), ('S', 99999999)) people(region, record_key)
--| GROUP BY ROLLUP (region) ORDER BY region;
--| @output
--| region | original | n
--| -------+----------+--
--| N      |        2 | 2
--| S      |        1 | 1
--| NULL   |        3 | 5
--| @source Giessing & Tent (2019); Geyer, Tent, Reiffert & Giessing (2022)
CREATE OR REPLACE MACRO sdc_count(record_key, ptable := 'default', filter := true, digits := 8) AS
    _sdc_refuse_bad_keys(
        typeof(max(record_key)),
        count(CASE WHEN filter THEN 1 END),
        count(CASE WHEN filter THEN record_key END),
        sum(CASE WHEN filter THEN record_key END),
        count(CASE WHEN filter THEN 1 END)
            + _sdc_count_noise(
                count(CASE WHEN filter THEN 1 END), sum(CASE WHEN filter THEN record_key END), ptable, digits)
    );

-- The smallest multiple of the p-table's keys that has room for a record key.
CREATE OR REPLACE MACRO _sdc_unit_modulus(p, digits) AS
    ((10 ** digits)::BIGINT + _sdc_ptable_modulus(p) - 1) // _sdc_ptable_modulus(p) * _sdc_ptable_modulus(p);

-- One integer a unit whose remainder modulo `modulus` is the unit's key and which differs between units: summed
-- DISTINCT it gives the key of a set of units however many rows each unit has, also where two units share a key.
-- The hash only tells units apart inside one query; no published number depends on its value.
CREATE OR REPLACE MACRO _sdc_unit_number(unit, record_key, digits, modulus) AS
    (hash(unit) >> CASE WHEN digits <= 9 THEN 0 ELSE 24 END)::HUGEINT * modulus + record_key;

--| sdc_count_units(unit, record_key, ptable := 'default', filter := true, digits := 8) -> BIGINT
--| The perturbed number of distinct units in each cell, for tables with several rows per unit (visits, jobs, trips).
--|
--| What `count(DISTINCT unit)` becomes. All rows of a unit carry the unit's key and the cell key counts each unit
--| once, so the answer equals that of `sdc_count` on a table with one row per unit. A NULL unit is an error.
--|
--| @arg unit any column: identifier of the unit
--| @arg record_key integer column: key of the unit, the same on all its rows
--| @arg ptable VARCHAR: name of a stored p-table for counts
--| @arg filter BOOLEAN expression over the rows: which rows to look at
--| @arg digits INTEGER: number of decimal digits of the record keys
--| @example
--| SELECT ward, count(DISTINCT patient) AS original, sdc_count_units(patient, record_key) AS patients
--| FROM (VALUES ('A', 1, 12345678), ('A', 1, 12345678), ('A', 2, 45678901)) visits(ward, patient, record_key)
--| GROUP BY ward;
--| @output
--| ward | original | patients
--| -----+----------+---------
--| A    |        2 |        2
--| @source Giessing & Tent (2019); distinct units by an exact DISTINCT sum
CREATE OR REPLACE MACRO sdc_count_units(unit, record_key, ptable := 'default', filter := true, digits := 8) AS
    CASE
        WHEN count(CASE WHEN filter THEN 1 END) <> count(CASE WHEN filter THEN unit END)
            THEN error('sdc_count_units: a row without a unit: the unit is NULL somewhere')
        ELSE _sdc_refuse_bad_keys(
            typeof(max(record_key)),
            count(CASE WHEN filter THEN 1 END),
            count(CASE WHEN filter THEN record_key END),
            sum(CASE WHEN filter THEN record_key END),
            count(DISTINCT CASE WHEN filter THEN _sdc_unit_number(unit, record_key, digits, _sdc_unit_modulus(ptable, digits)) END)
                + _sdc_count_noise(
                    count(DISTINCT CASE WHEN filter THEN _sdc_unit_number(unit, record_key, digits, _sdc_unit_modulus(ptable, digits)) END),
                    sum(DISTINCT CASE WHEN filter THEN _sdc_unit_number(unit, record_key, digits, _sdc_unit_modulus(ptable, digits)) END)
                        % _sdc_unit_modulus(ptable, digits),
                    ptable, digits)
        )
    END;

-- The sum as a DOUBLE that does not depend on the order of the rows. Integers and decimals are summed exactly by
-- DuckDB; floating-point measures are first put on a grid of 10^-decimals, which 64-bit integers add exactly.
CREATE OR REPLACE MACRO _sdc_exact_sum(y, decimals) AS
    CASE
        WHEN typeof(sum(y)) = 'DOUBLE' THEN
            sum(CASE
                WHEN abs(y) * 10.0 ** decimals >= 9.2e18
                    THEN error('a measure is NaN, infinite or too large for decimals := ' || decimals)
                ELSE round(y * 10.0 ** decimals)::BIGINT
            END) / 10.0 ** decimals
        ELSE sum(y)::DOUBLE
    END;

--| sdc_weighted_count(weight, record_key, ptable := 'default', filter := true, digits := 8, decimals := 4) -> DOUBLE
--| The perturbed weighted count: the perturbed number of records times the cell's mean weight.
--|
--| Zero records give 0. NULL, NaN or infinite weights are an error.
--|
--| @arg weight numeric column: sampling weight of the record
--| @arg record_key integer column: keys of the records
--| @arg ptable VARCHAR: name of a stored p-table for counts
--| @arg filter BOOLEAN expression over the rows: which records to count
--| @arg digits INTEGER: number of decimal digits of the record keys
--| @arg decimals INTEGER: floating-point weights are added exactly on a grid of 10^-decimals
--| @example
--| SELECT region, sum(weight) AS original, sdc_weighted_count(weight, record_key) AS n
--| FROM (VALUES ('N', 12345678, 10), ('N', 45678901, 30)) people(region, record_key, weight)
--| GROUP BY region;
--| @output
--| region | original |    n
--| -------+----------+-----
--| N      |       40 | 40.0
--| @source R package cellKey (weighted counts)
CREATE OR REPLACE MACRO sdc_weighted_count(
    weight, record_key, ptable := 'default', filter := true, digits := 8, decimals := 4
) AS
    CASE
        WHEN count(CASE WHEN filter THEN 1 END) <> count(CASE WHEN filter THEN weight END)
            THEN error('sdc_weighted_count: a weight is NULL')
        WHEN count(CASE WHEN filter THEN 1 END) = 0 THEN 0.0
        ELSE sdc_count(record_key, ptable := ptable, filter := filter, digits := digits)
            * (_sdc_exact_sum(CASE WHEN filter THEN weight END, decimals) / count(CASE WHEN filter THEN 1 END))
    END;

-- The ratios a of the rows of a magnitude table, in the block for even (or all) or for odd numbers of contributors.
CREATE OR REPLACE MACRO _sdc_block_rows(p, is_odd) AS
    CASE WHEN is_odd THEN _sdc_ptable_odd_rows(p) ELSE _sdc_ptable_rows(p) END;

-- Noise V(a, key) of a magnitude table: the row a, or linear interpolation between the neighbouring rows with the
-- same key. `upper` is the share of the row above a; there is none above the last row.
CREATE OR REPLACE MACRO _sdc_magnitude_noise(p, is_odd, a, key) AS
    list_transform(
        list_transform(
            list_transform(
                [{'rows': _sdc_block_rows(p, is_odd), 'a': a, 'key': key}],
                lambda block: {
                    'rows': block.rows, 'a': block.a, 'key': block.key,
                    'below': len(list_filter(block.rows, lambda row_a: row_a <= block.a))
                }
            ),
            lambda place: {
                'slot': CASE WHEN is_odd THEN _sdc_ptable_odd_first(p) ELSE 0 END + place.below - 1,
                'upper': coalesce(
                    (place.a - place.rows[place.below]) / (place.rows[place.below + 1] - place.rows[place.below]), 0),
                'key': place.key
            }
        ),
        lambda between: list_sum(list_transform(
            [
                {'slot': between.slot, 'weight': 1 - between.upper},
                {'slot': between.slot + 1, 'weight': between.upper}
            ],
            lambda corner: corner.weight * _sdc_noise_code(p, corner.slot, between.key)
        )) / _sdc_ptable_step(p)
    )[1];

-- The noise coefficient of a contribution of absolute value t: p_small below the flex point fp, then falling to p_large.
CREATE OR REPLACE MACRO _sdc_noise_coefficient(t, p_large, p_small, fp, q) AS
    CASE
        WHEN fp IS NULL THEN p_large
        WHEN t < fp THEN p_small
        ELSE p_large * (1 + (p_small * t - p_large * fp) / (p_large * fp) * (2 * fp / (fp + t)) ** q)
    END::DOUBLE;

-- The coefficient below the flex point: p_large where there is no flex point or p_small is not given.
CREATE OR REPLACE MACRO _sdc_small_coefficient(p_large, p_small, fp) AS
    CASE WHEN fp IS NULL THEN p_large ELSE coalesce(p_small, p_large) END::DOUBLE;

-- The key of component m: its 8 digits rotated left by m places, which is multiplication by 10^m modulo 10^8 - 1 (taken
-- from 1 to 10^8 - 1, since 99999999 must stay what it is; 0 stays 0).
CREATE OR REPLACE MACRO _sdc_rotated_key(key, m) AS
    1 + (key * (10 ** m)::BIGINT - 1) % 99999999;

-- The p-table that serves a component: the one for small cells below the separation point. A constant where there is
-- no such table, so that the planner folds everything that hangs on it.
CREATE OR REPLACE MACRO _sdc_serving_ptable(p, small, below) AS
    CASE WHEN small IS NULL THEN p WHEN below THEN small ELSE p END;

-- One component of the perturbation of a magnitude: from the running value x to the next.
--   step 1  x_delta of the contribution t, the separation point z and the cap at |x|
--   step 2  the noise V at a = |x| / x_delta
--   step 3  h = sgn(x) x_delta s (mu + |V|), not across zero
CREATE OR REPLACE MACRO _sdc_next_value(x, t, epsilon, j, key, p, small, is_odd, p_large, p_small, fp, q, z, mu, compat) AS
    list_transform(
        list_transform(
            list_transform(
                [{
                    'size': abs(x),
                    'delta': t * _sdc_noise_coefficient(t, p_large, p_small, fp, q)
                        * CASE WHEN compat AND fp IS NOT NULL AND t < fp THEN 1 ELSE epsilon END
                }],
                lambda one: {
                    'size': one.size,
                    'delta': one.delta,
                    'below': t < z OR (one.size < one.delta AND one.size < z * p_small * epsilon)
                }
            ),
            lambda two: {
                'size': two.size,
                'unchanged': x = 0 OR t = 0 OR two.delta = 0 OR (two.below AND t >= z AND j > 1),
                'delta': CASE WHEN two.below THEN 1 ELSE least(two.size, two.delta) END,
                'noise': _sdc_magnitude_noise(
                    _sdc_serving_ptable(p, small, two.below), is_odd AND NOT two.below,
                    CASE WHEN two.below THEN two.size ELSE greatest(1, two.size / two.delta) END, key),
                'mu': CASE WHEN j = 1 OR compat THEN mu ELSE 0 END
            }
        ),
        lambda three:
            CASE
                WHEN three.unchanged THEN x
                ELSE x + CASE WHEN x < 0 THEN -1 ELSE 1 END
                    * CASE
                        WHEN three.noise >= 0 THEN three.delta * (three.mu + three.noise)
                        ELSE greatest(three.delta * -1 * (three.mu - three.noise), -three.size)
                    END
            END
    )[1];

-- Separation point z_s: contributions below it are perturbed by the small-cells table.
CREATE OR REPLACE MACRO _sdc_separation_point(small, epsilon, p_large, p_small, fp) AS
    CASE
        WHEN small IS NULL THEN 0::DOUBLE
        ELSE sqrt(_sdc_ptable_last_variance(small))
            / (sqrt(list_sum(list_transform(epsilon, lambda share: (share * share)::DOUBLE)))
                * _sdc_small_coefficient(p_large, p_small, fp))
    END;

-- The parameters of a magnitude perturbation, checked once: constants, so that the planner folds this away.
CREATE OR REPLACE MACRO _sdc_magnitude_parameters_hold(
    p, small, p_large, p_small, fp, q, epsilon, mu_c, digits
) AS
    CASE
        WHEN _sdc_ptable_kind(p) <> 'magnitudes'
            THEN error('p-table ''' || p || ''' is for counts; a sum needs one for magnitudes')
        WHEN small IS NOT NULL AND _sdc_ptable_kind(coalesce(small, p)) <> 'magnitudes'
            THEN error('p-table ''' || small || ''' is for counts; small_cells needs one for magnitudes')
        WHEN NOT (p_large > 0) OR NOT (coalesce(p_small, p_large) >= p_large)
            THEN error('noise coefficients must satisfy 0 < p_large <= p_small')
        WHEN NOT (coalesce(fp, 1) > 0) THEN error('the flex point fp must be positive')
        WHEN NOT (q > 1) THEN error('the exponent q of the flex function must be above 1')
        WHEN len(epsilon) NOT BETWEEN 1 AND 6 OR epsilon[1] <> 1 OR list_min(epsilon) < 0 OR epsilon <> list_reverse_sort(epsilon)
            THEN error('epsilon must be 1 to 6 numbers that begin with 1 and never rise')
        WHEN NOT (mu_c >= 0) THEN error('mu_c must not be negative')
        WHEN digits NOT BETWEEN 5 AND 18 THEN error('digits must be between 5 and 18')
        ELSE true
    END;

--| sdc_ckm_sum(x, contributions, key_sum, ptable := 'default_magnitude', p_large := 0.1, p_small := NULL, fp := NULL, q := 3, epsilon := [1.0], small_cells := NULL, mu_c := 0, sensitive := false, is_odd := false, same_key := true, digits := 8, compat := false) -> DOUBLE
--| The perturbed value of a magnitude cell whose sum, largest contributions and key sum are already known.
--|
--| The scalar heart of `sdc_sum`. A cell whose value is 0, or without contributions, stays as it is.
--|
--| @arg x DOUBLE: the cell's value
--| @arg contributions DOUBLE[]: the largest contributions (weight times value), largest absolute value first; at most as many as `epsilon` are used
--| @arg key_sum HUGEINT: exact integer sum of the record keys of the contributing records
--| @arg ptable VARCHAR: name of a stored p-table for magnitudes
--| @arg p_large DOUBLE: noise coefficient of large contributions (sigma_0)
--| @arg p_small DOUBLE: noise coefficient of contributions below `fp` (sigma_1); p_large when NULL
--| @arg fp DOUBLE: flex point z_f; NULL means one coefficient everywhere
--| @arg q DOUBLE: exponent of the flex function, above 1; from 2 p_small / (p_small - p_large) on it falls monotonously
--| @arg epsilon DOUBLE[]: share of the noise of the 1st, 2nd, .. contribution; its length is top-k
--| @arg small_cells VARCHAR: name of a p-table for values below the separation point; NULL: none
--| @arg mu_c DOUBLE: extra noise of sensitive cells (first component only)
--| @arg sensitive BOOLEAN: whether the cell is sensitive
--| @arg is_odd BOOLEAN: whether the number of contributors is odd (only for p-tables with even and odd rows)
--| @arg same_key BOOLEAN: whether the first component uses the cell key as it is; otherwise its digits are rotated once
--| @arg digits INTEGER: number of decimal digits of the record keys
--| @arg compat BOOLEAN: as R package cellKey does: no epsilon below the flex point, mu_c on every component
--| @example
--| SELECT sdc_ckm_sum(50000, [30000], 12340000) AS perturbed, sdc_ckm_sum(0, [], 0) AS empty;
--| @output
--| perturbed | empty
--| ----------+------
--|   48800.0 |   0.0
--| @source Giessing & Tent (2019); R package cellKey, "flex" variant with its omissions mended
CREATE OR REPLACE MACRO sdc_ckm_sum(
    x, contributions, key_sum, ptable := 'default_magnitude', p_large := 0.1, p_small := NULL, fp := NULL, q := 3,
    epsilon := [1.0], small_cells := NULL, mu_c := 0, sensitive := false, is_odd := false, same_key := true,
    digits := 8, compat := false
) AS
    CASE
        WHEN NOT _sdc_magnitude_parameters_hold(ptable, small_cells, p_large, p_small, fp, q, epsilon, mu_c, digits) THEN NULL
        WHEN key_sum < 0 THEN error('negative record keys: keys lie between 0 and 10^digits - 1 (see sdc_check_keys)')
        WHEN x IS NULL THEN NULL
        WHEN NOT isfinite(x::DOUBLE) THEN error('sdc_ckm_sum: a cell value is NaN or infinite')
        ELSE list_reduce(
            list_transform(
                list_slice(contributions, 1, len(epsilon)),
                lambda contribution, place: {
                    'x': 0::DOUBLE,
                    't': abs(contribution)::DOUBLE,
                    'j': place::BIGINT,
                    'epsilon': epsilon[place]::DOUBLE,
                    'key': _sdc_rotated_key(
                        _sdc_scaled_key(key_sum, ptable, digits), CASE WHEN same_key THEN place - 1 ELSE place END),
                    'z': _sdc_separation_point(small_cells, epsilon, p_large, p_small, fp),
                    'mu': CASE WHEN sensitive THEN mu_c ELSE 0 END::DOUBLE
                }
            ),
            lambda value, part: {
                'x': _sdc_next_value(
                    value.x, part.t, part.epsilon, part.j, part.key, ptable, small_cells, is_odd, p_large::DOUBLE,
                    _sdc_small_coefficient(p_large, p_small, fp), fp::DOUBLE, q::DOUBLE, part.z, part.mu, compat),
                't': part.t, 'j': part.j, 'epsilon': part.epsilon, 'key': part.key, 'z': part.z, 'mu': part.mu
            },
            {
                'x': x::DOUBLE, 't': 0::DOUBLE, 'j': 0::BIGINT, 'epsilon': 0::DOUBLE, 'key': 0::BIGINT,
                'z': 0::DOUBLE, 'mu': 0::DOUBLE
            }
        ).x
    END;

-- A measure of one record on its way into a cell: NULL outside the cell, infinite where the record has no key. The
-- infinite value surfaces in the largest contribution, so a missing key costs no aggregate of its own.
CREATE OR REPLACE MACRO _sdc_contribution(y, record_key, filter) AS
    CASE WHEN filter THEN CASE WHEN record_key IS NULL THEN 'inf'::DOUBLE WHEN y <> 0 THEN abs(y)::DOUBLE END END;

CREATE OR REPLACE MACRO _sdc_weighted_contribution(y, weight, record_key, filter) AS
    CASE
        WHEN filter THEN
            CASE
                WHEN record_key IS NULL OR weight IS NULL
                    THEN {'y': 'inf'::DOUBLE, 'weight': 1::DOUBLE, 'value': 'inf'::DOUBLE}
                WHEN y <> 0 THEN {'y': abs(y)::DOUBLE, 'weight': weight::DOUBLE, 'value': abs(weight * y)::DOUBLE}
            END
    END;

-- The key sum of a magnitude cell: over the records that contribute (y not NULL, not zero), or over all of them.
CREATE OR REPLACE MACRO _sdc_contributors_key_sum(y, record_key, filter, zero_keys) AS
    CASE
        WHEN zero_keys THEN sum(CASE WHEN filter THEN record_key ELSE 0 END)
        ELSE sum(CASE WHEN filter AND y <> 0 THEN record_key ELSE 0 END)
    END;

-- Where the noise of nearly every cell comes from: one contribution t that is small beside the cell, so that the last
-- row of the table serves. The same arithmetic as `_sdc_next_value`, to the bit, without building lists.
CREATE OR REPLACE MACRO _sdc_large_cell_value(x, t, key_sum, p, p_large, p_small, fp, q, digits) AS
    x + CASE WHEN x < 0 THEN -1 ELSE 1 END
        * (t * _sdc_noise_coefficient(t, p_large, p_small, fp, q)
            * (_sdc_noise_code(p, len(_sdc_ptable_rows(p)) - 1, _sdc_scaled_key(key_sum, p, digits))::DOUBLE
                / _sdc_ptable_step(p)));

CREATE OR REPLACE MACRO _sdc_is_large_cell(x, t, p, p_large, p_small, fp, q) AS
    t > 0 AND abs(x) >= _sdc_ptable_rows(p)[-1] * t * _sdc_noise_coefficient(t, p_large, p_small, fp, q);

CREATE OR REPLACE MACRO _sdc_refuse_bad_sum(name, key_type, largest, key_sum, result) AS
    CASE
        WHEN key_type NOT IN ('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'HUGEINT',
                              'UTINYINT', 'USMALLINT', 'UINTEGER', 'UBIGINT')
            THEN error('record keys must be integers, not ' || key_type || ' (see sdc_record_key)')
        WHEN largest = 'inf'::DOUBLE
            THEN error(name || ': a record without a key (or weight): it is NULL somewhere (see sdc_check_keys)')
        WHEN key_sum < 0 THEN error('negative record keys: keys lie between 0 and 10^digits - 1 (see sdc_check_keys)')
        ELSE result
    END;

-- What the noise is proportional to when it is not the top contributions: one figure of the cell.
CREATE OR REPLACE MACRO _sdc_cell_magnifier(magnifier, x, n, smallest, largest) AS
    CASE
        WHEN magnifier IN ('mean', 'sum') THEN abs(x / CASE magnifier WHEN 'mean' THEN n ELSE 1 END)
        WHEN magnifier = 'range' THEN largest - smallest
        ELSE error('magnifier must be ''top'', ''mean'', ''range'' or ''sum''')
    END::DOUBLE;

-- Two forms: without `epsilon` the largest contribution serves alone. An aggregate of the k largest, even if it is not
-- used, would keep DuckDB from computing grouping sets from one another.

--| sdc_sum(y, record_key, epsilon := [1.0], ptable := 'default_magnitude', p_large := 0.1, p_small := NULL, fp := NULL, q := 3, small_cells := NULL, mu_c := 0, sensitive := false, magnifier := 'top', same_key := true, zero_keys := false, filter := true, digits := 8, decimals := 4, compat := false) -> DOUBLE
--| The perturbed sum of a measure in each cell: noise in proportion to the cell's largest contributions.
--|
--| An aggregate: use it with GROUP BY, CUBE, ROLLUP and GROUPING SETS. The standard deviation of the noise is
--| `p_large` (or, below the flex point, `p_small`) times the largest contribution when the p-table has variance 1.
--| NULL where `sum(y)` is NULL; 0 stays 0; the sign of a cell never changes. A NULL, negative or non-integer key is an
--| error, also on a record whose measure is NULL. Integer and decimal measures are summed exactly; DOUBLE and FLOAT
--| exactly on a grid of 10^-decimals, so the result does not depend on the order of the rows. NaN and infinite
--| measures are an error.
--|
--| @arg y numeric column: the measure
--| @arg record_key integer column: keys of the records
--| @arg epsilon DOUBLE[]: share of the noise of the 1st, 2nd, .. contribution; its length (1 to 6) is top-k
--| @arg ptable VARCHAR: name of a stored p-table for magnitudes (all cells, or even and odd rows)
--| @arg p_large DOUBLE: noise coefficient of large contributions (sigma_0)
--| @arg p_small DOUBLE: noise coefficient of contributions below `fp` (sigma_1); p_large when NULL
--| @arg fp DOUBLE: flex point z_f; NULL means one coefficient everywhere
--| @arg q DOUBLE: exponent of the flex function, above 1; from 2 p_small / (p_small - p_large) on it falls monotonously
--| @arg small_cells VARCHAR: name of a p-table for values below the separation point; NULL: none
--| @arg mu_c DOUBLE: extra noise of sensitive cells (first component only)
--| @arg sensitive BOOLEAN expression over aggregates: which cells are sensitive, e.g. `count(*) < 5`
--| @arg magnifier VARCHAR: 'top' (largest contributions), 'mean', 'range' or 'sum' of the cell (these use one component)
--| @arg same_key BOOLEAN: whether the first component uses the cell key as it is; otherwise its digits are rotated once
--| @arg zero_keys BOOLEAN: whether records with y = 0 or NULL count in the cell key
--| @arg filter BOOLEAN expression over the rows: which records to sum (as FILTER (WHERE ..))
--| @arg digits INTEGER: number of decimal digits of the record keys (5 to 18)
--| @arg decimals INTEGER: floating-point measures are added exactly on a grid of 10^-decimals
--| @arg compat BOOLEAN: as R package cellKey does: no epsilon below the flex point, mu_c on every component
--| @example
--| SELECT region, sum(income) AS original, round(sdc_sum(income, record_key), 2) AS income
--| FROM (VALUES ('N', 12345678, 2000), ('N', 45678901, 3500), ('S', 99999999, 1200)) people(region, record_key, income)
--| GROUP BY region ORDER BY region;
--| @output
--| region | original | income
--| -------+----------+-------
--| N      |     5500 | 6060.0
--| S      |     1200 | 1440.0
--| @source Giessing & Tent (2019); Geyer et al. (2022), equation (1); R package cellKey
CREATE OR REPLACE MACRO sdc_sum(
    y, record_key, epsilon, ptable := 'default_magnitude', p_large := 0.1, p_small := NULL, fp := NULL, q := 3,
    small_cells := NULL, mu_c := 0, sensitive := false, magnifier := 'top', same_key := true, zero_keys := false,
    filter := true, digits := 8, decimals := 4, compat := false
) AS
    _sdc_refuse_bad_sum(
        'sdc_sum',
        typeof(max(record_key)),
        max(_sdc_contribution(y, record_key, filter)),
        _sdc_contributors_key_sum(y, record_key, filter, zero_keys),
        sdc_ckm_sum(
            _sdc_exact_sum(CASE WHEN filter THEN y END, decimals),
            CASE
                WHEN magnifier <> 'top' THEN [_sdc_cell_magnifier(
                    magnifier,
                    _sdc_exact_sum(CASE WHEN filter THEN y END, decimals),
                    count(CASE WHEN filter THEN y END),
                    min(CASE WHEN filter THEN y END),
                    max(CASE WHEN filter THEN y END))]
                WHEN len(epsilon) = 1 THEN [max(_sdc_contribution(y, record_key, filter))]
                ELSE max(_sdc_contribution(y, record_key, filter), len(epsilon))
            END,
            _sdc_contributors_key_sum(y, record_key, filter, zero_keys),
            ptable := ptable, p_large := p_large, p_small := p_small, fp := fp, q := q, epsilon := epsilon,
            small_cells := small_cells, mu_c := mu_c, sensitive := sensitive,
            is_odd := _sdc_ptable_odd_first(ptable) > 0 AND count(CASE WHEN filter THEN y END) % 2 = 1,
            same_key := same_key, digits := digits, compat := compat)
    ),
(
    y, record_key, ptable := 'default_magnitude', p_large := 0.1, p_small := NULL, fp := NULL, q := 3,
    small_cells := NULL, mu_c := 0, sensitive := false, magnifier := 'top', same_key := true, zero_keys := false,
    filter := true, digits := 8, decimals := 4, compat := false
) AS
    _sdc_refuse_bad_sum(
        'sdc_sum',
        typeof(max(record_key)),
        max(_sdc_contribution(y, record_key, filter)),
        _sdc_contributors_key_sum(y, record_key, filter, zero_keys),
        CASE
            WHEN magnifier = 'top' AND small_cells IS NULL AND mu_c = 0 AND same_key
                AND _sdc_ptable_odd_first(ptable) = 0
                AND _sdc_magnitude_parameters_hold(ptable, small_cells, p_large, p_small, fp, q, [1.0], mu_c, digits)
                AND _sdc_is_large_cell(
                    _sdc_exact_sum(CASE WHEN filter THEN y END, decimals),
                    max(_sdc_contribution(y, record_key, filter)),
                    ptable, p_large, p_small, fp, q)
                THEN _sdc_large_cell_value(
                    _sdc_exact_sum(CASE WHEN filter THEN y END, decimals),
                    max(_sdc_contribution(y, record_key, filter)),
                    _sdc_contributors_key_sum(y, record_key, filter, zero_keys),
                    ptable, p_large, p_small, fp, q, digits)
            ELSE sdc_ckm_sum(
                _sdc_exact_sum(CASE WHEN filter THEN y END, decimals),
                CASE
                    WHEN magnifier <> 'top' THEN [_sdc_cell_magnifier(
                        magnifier,
                        _sdc_exact_sum(CASE WHEN filter THEN y END, decimals),
                        count(CASE WHEN filter THEN y END),
                        min(CASE WHEN filter THEN y END),
                        max(CASE WHEN filter THEN y END))]
                    ELSE [max(_sdc_contribution(y, record_key, filter))]
                END,
                _sdc_contributors_key_sum(y, record_key, filter, zero_keys),
                ptable := ptable, p_large := p_large, p_small := p_small, fp := fp, q := q, epsilon := [1.0],
                small_cells := small_cells, mu_c := mu_c, sensitive := sensitive,
                is_odd := _sdc_ptable_odd_first(ptable) > 0 AND count(CASE WHEN filter THEN y END) % 2 = 1,
                same_key := same_key, digits := digits, compat := compat)
        END
    );

--| sdc_weighted_sum(y, weight, record_key, ptable := 'default_magnitude', p_large := 0.1, p_small := NULL, fp := NULL, q := 3, epsilon := [1.0], small_cells := NULL, mu_c := 0, sensitive := false, magnifier := 'top', same_key := true, zero_keys := false, filter := true, digits := 8, decimals := 4, compat := false) -> DOUBLE
--| The perturbed weighted sum of a measure in each cell: `sdc_sum` for survey data.
--|
--| A contribution is weight times value; the largest are chosen by absolute value, then weight. A NULL weight is an
--| error. Everything else as in `sdc_sum`.
--|
--| @arg y numeric column: the measure
--| @arg weight numeric column: sampling weight of the record
--| @arg record_key integer column: keys of the records
--| @arg ptable VARCHAR: name of a stored p-table for magnitudes (all cells, or even and odd rows)
--| @arg p_large DOUBLE: noise coefficient of large contributions (sigma_0)
--| @arg p_small DOUBLE: noise coefficient of contributions below `fp` (sigma_1); p_large when NULL
--| @arg fp DOUBLE: flex point z_f; NULL means one coefficient everywhere
--| @arg q DOUBLE: exponent of the flex function, above 1
--| @arg epsilon DOUBLE[]: share of the noise of the 1st, 2nd, .. contribution; its length (1 to 6) is top-k
--| @arg small_cells VARCHAR: name of a p-table for values below the separation point; NULL: none
--| @arg mu_c DOUBLE: extra noise of sensitive cells
--| @arg sensitive BOOLEAN expression over aggregates: which cells are sensitive, e.g. `count(*) < 5`
--| @arg magnifier VARCHAR: 'top' (largest contributions), 'mean' (weighted), 'range' (unweighted) or 'sum' of the cell
--| @arg same_key BOOLEAN: whether the first component uses the cell key as it is; otherwise its digits are rotated once
--| @arg zero_keys BOOLEAN: whether records with y = 0 or NULL count in the cell key
--| @arg filter BOOLEAN expression over the rows: which records to sum (as FILTER (WHERE ..))
--| @arg digits INTEGER: number of decimal digits of the record keys (5 to 18)
--| @arg decimals INTEGER: floating-point products of measure and weight are added exactly on a grid of 10^-decimals
--| @arg compat BOOLEAN: leave epsilon out below the flex point, as R package cellKey does
--| @example
--| SELECT region, sum(weight * income) AS original, round(sdc_weighted_sum(income, weight, record_key), 2) AS income
--| FROM (VALUES ('N', 12345678, 2000, 10), ('N', 45678901, 3500, 20)) people(region, record_key, income, weight)
--| GROUP BY region;
--| @output
--| region | original |   income
--| -------+----------+---------
--| N      |    90000 | 101200.0
--| @source R package cellKey (weighted magnitudes)
CREATE OR REPLACE MACRO sdc_weighted_sum(
    y, weight, record_key, ptable := 'default_magnitude', p_large := 0.1, p_small := NULL, fp := NULL, q := 3,
    epsilon := [1.0], small_cells := NULL, mu_c := 0, sensitive := false, magnifier := 'top', same_key := true,
    zero_keys := false, filter := true, digits := 8, decimals := 4, compat := false
) AS
    _sdc_refuse_bad_sum(
        'sdc_weighted_sum',
        typeof(max(record_key)),
        max(_sdc_weighted_contribution(y, weight, record_key, filter)).y,
        _sdc_contributors_key_sum(y, record_key, filter, zero_keys),
        sdc_ckm_sum(
            _sdc_exact_sum(CASE WHEN filter THEN y * weight END, decimals),
            CASE
                WHEN magnifier <> 'top' THEN [_sdc_cell_magnifier(
                    magnifier,
                    _sdc_exact_sum(CASE WHEN filter THEN y * weight END, decimals),
                    _sdc_exact_sum(CASE WHEN filter AND y IS NOT NULL THEN weight END, decimals),
                    min(CASE WHEN filter THEN y END),
                    max(CASE WHEN filter THEN y END))]
                ELSE list_transform(
                    max(_sdc_weighted_contribution(y, weight, record_key, filter), len(epsilon)), lambda kept: kept.value)
            END,
            _sdc_contributors_key_sum(y, record_key, filter, zero_keys),
            ptable := ptable, p_large := p_large, p_small := p_small, fp := fp, q := q, epsilon := epsilon,
            small_cells := small_cells, mu_c := mu_c, sensitive := sensitive,
            is_odd := _sdc_ptable_odd_first(ptable) > 0 AND count(CASE WHEN filter THEN y END) % 2 = 1,
            same_key := same_key, digits := digits, compat := compat)
    );

--| sdc_mean(y, record_key, epsilon := [1.0], ptable := 'default_magnitude', count_ptable := 'default', p_large := 0.1, p_small := NULL, fp := NULL, q := 3, small_cells := NULL, filter := true, digits := 8, decimals := 4) -> DOUBLE
--| The perturbed mean of a measure in each cell: the perturbed sum divided by the original number of records.
--|
--| Mean-before-sum: with `sdc_mean_sum` published as the sum and `sdc_count(record_key, filter := y IS NOT NULL)` as the
--| count, their quotient is this mean. NULL where no record has a value or the published count is 0.
--| Never publish it beside `sdc_sum` of the same measure: the quotient of the two is the original count.
--|
--| @arg y numeric column: the measure
--| @arg record_key integer column: keys of the records
--| @arg epsilon DOUBLE[]: share of the noise of the 1st, 2nd, .. contribution; its length (1 to 6) is top-k
--| @arg ptable VARCHAR: name of a stored p-table for magnitudes
--| @arg count_ptable VARCHAR: name of the p-table of the published counts
--| @arg p_large DOUBLE: noise coefficient of large contributions (sigma_0)
--| @arg p_small DOUBLE: noise coefficient of contributions below `fp` (sigma_1); p_large when NULL
--| @arg fp DOUBLE: flex point z_f; NULL means one coefficient everywhere
--| @arg q DOUBLE: exponent of the flex function, above 1
--| @arg small_cells VARCHAR: name of a p-table for values below the separation point; NULL: none
--| @arg filter BOOLEAN expression over the rows: which records to look at (as FILTER (WHERE ..))
--| @arg digits INTEGER: number of decimal digits of the record keys (5 to 18)
--| @arg decimals INTEGER: floating-point measures are added exactly on a grid of 10^-decimals
--| @example
--| SELECT region, avg(income) AS original, round(sdc_mean(income, record_key), 2) AS income
--| FROM (VALUES ('N', 12345678, 2000), ('N', 45678901, 3500)) people(region, record_key, income)
--| GROUP BY region;
--| @output
--| region | original | income
--| -------+----------+-------
--| N      |   2750.0 | 3030.0
--| @source Geyer et al. (2022), mean-before-sum
CREATE OR REPLACE MACRO sdc_mean(
    y, record_key, epsilon, ptable := 'default_magnitude', count_ptable := 'default', p_large := 0.1,
    p_small := NULL, fp := NULL, q := 3, small_cells := NULL, filter := true, digits := 8, decimals := 4
) AS
    CASE
        WHEN sdc_count(record_key, ptable := count_ptable, filter := filter AND y IS NOT NULL, digits := digits) > 0
            THEN sdc_sum(
                y, record_key, ptable := ptable, p_large := p_large, p_small := p_small, fp := fp, q := q,
                epsilon := epsilon, small_cells := small_cells, filter := filter, digits := digits, decimals := decimals
            ) / count(CASE WHEN filter THEN y END)
    END,
(
    y, record_key, ptable := 'default_magnitude', count_ptable := 'default', p_large := 0.1, p_small := NULL,
    fp := NULL, q := 3, small_cells := NULL, filter := true, digits := 8, decimals := 4
) AS
    CASE
        WHEN sdc_count(record_key, ptable := count_ptable, filter := filter AND y IS NOT NULL, digits := digits) > 0
            THEN sdc_sum(
                y, record_key, ptable := ptable, p_large := p_large, p_small := p_small, fp := fp, q := q,
                small_cells := small_cells, filter := filter, digits := digits, decimals := decimals
            ) / count(CASE WHEN filter THEN y END)
    END;

--| sdc_mbs(x_hat, n, n_hat) -> DOUBLE
--| Mean-before-sum for one cell: the perturbed sum rescaled so that sum / published count is x_hat / n.
--|
--| 0 where the original or the published count is 0.
--|
--| @arg x_hat DOUBLE: perturbed sum
--| @arg n BIGINT: original count
--| @arg n_hat BIGINT: published (perturbed) count
--| @example
--| SELECT sdc_mbs(1050, 6, 7) AS published_sum;
--| @output
--| published_sum
--| -------------
--|        1225.0
--| @source Geyer et al. (2022); not cellKey's option of the same name
CREATE OR REPLACE MACRO sdc_mbs(x_hat, n, n_hat) AS
    CASE WHEN n = 0 OR n_hat = 0 THEN 0 ELSE x_hat * n_hat / n END::DOUBLE;

--| sdc_mean_sum(y, record_key, epsilon := [1.0], ptable := 'default_magnitude', count_ptable := 'default', p_large := 0.1, p_small := NULL, fp := NULL, q := 3, small_cells := NULL, filter := true, digits := 8, decimals := 4) -> DOUBLE
--| The perturbed sum under mean-before-sum: divided by the published count it gives `sdc_mean`.
--|
--| @arg y numeric column: the measure
--| @arg record_key integer column: keys of the records
--| @arg epsilon DOUBLE[]: share of the noise of the 1st, 2nd, .. contribution; its length (1 to 6) is top-k
--| @arg ptable VARCHAR: name of a stored p-table for magnitudes
--| @arg count_ptable VARCHAR: name of the p-table of the published counts
--| @arg p_large DOUBLE: noise coefficient of large contributions (sigma_0)
--| @arg p_small DOUBLE: noise coefficient of contributions below `fp` (sigma_1); p_large when NULL
--| @arg fp DOUBLE: flex point z_f; NULL means one coefficient everywhere
--| @arg q DOUBLE: exponent of the flex function, above 1
--| @arg small_cells VARCHAR: name of a p-table for values below the separation point; NULL: none
--| @arg filter BOOLEAN expression over the rows: which records to look at (as FILTER (WHERE ..))
--| @arg digits INTEGER: number of decimal digits of the record keys (5 to 18)
--| @arg decimals INTEGER: floating-point measures are added exactly on a grid of 10^-decimals
--| @example
--| SELECT region, round(sdc_mean_sum(income, record_key), 2) AS income, sdc_count(record_key) AS n
--| FROM (VALUES ('N', 12345678, 2000), ('N', 45678901, 3500)) people(region, record_key, income)
--| GROUP BY region;
--| @output
--| region | income | n
--| -------+--------+--
--| N      | 6060.0 | 2
--| @source Geyer et al. (2022), mean-before-sum
CREATE OR REPLACE MACRO sdc_mean_sum(
    y, record_key, epsilon, ptable := 'default_magnitude', count_ptable := 'default', p_large := 0.1,
    p_small := NULL, fp := NULL, q := 3, small_cells := NULL, filter := true, digits := 8, decimals := 4
) AS
    sdc_mbs(
        sdc_sum(
            y, record_key, ptable := ptable, p_large := p_large, p_small := p_small, fp := fp, q := q,
            epsilon := epsilon, small_cells := small_cells, filter := filter, digits := digits, decimals := decimals),
        count(CASE WHEN filter THEN y END),
        sdc_count(record_key, ptable := count_ptable, filter := filter AND y IS NOT NULL, digits := digits)
    ),
(
    y, record_key, ptable := 'default_magnitude', count_ptable := 'default', p_large := 0.1, p_small := NULL,
    fp := NULL, q := 3, small_cells := NULL, filter := true, digits := 8, decimals := 4
) AS
    sdc_mbs(
        sdc_sum(
            y, record_key, ptable := ptable, p_large := p_large, p_small := p_small, fp := fp, q := q,
            small_cells := small_cells, filter := filter, digits := digits, decimals := decimals),
        count(CASE WHEN filter THEN y END),
        sdc_count(record_key, ptable := count_ptable, filter := filter AND y IS NOT NULL, digits := digits)
    );
