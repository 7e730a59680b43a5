"""The relations of PostgreSQL's own schemas, which programs read to find out what a database has.

They have the names, numbers and columns of PostgreSQL 15. ``system_catalog`` makes them.
"""

from __future__ import annotations

PG_CATALOG = """
pg_aggregate 2600 r aggfnoid aggkind aggnumdirectargs:s aggtransfn aggfinalfn aggcombinefn aggserialfn aggdeserialfn
    aggmtransfn aggminvtransfn aggmfinalfn aggfinalextra:b aggmfinalextra:b aggfinalmodify aggmfinalmodify
    aggsortop:u aggtranstype:u aggtransspace:i aggmtranstype:u aggmtransspace:i agginitval aggminitval
pg_am 2601 r oid:u amname amhandler amtype
pg_amop 2602 r oid:u amopfamily:u amoplefttype:u amoprighttype:u amopstrategy:s amoppurpose amopopr:u amopmethod:u
    amopsortfamily:u
pg_amproc 2603 r oid:u amprocfamily:u amproclefttype:u amprocrighttype:u amprocnum:s amproc
pg_attrdef 2604 r oid:u adrelid:u adnum:s adbin
pg_attribute 1249 r attrelid:u attname atttypid:u attstattarget:i attlen:s attnum:s attndims:i attcacheoff:i
    atttypmod:i attbyval:b attalign attstorage attcompression attnotnull:b atthasdef:b atthasmissing:b attidentity
    attgenerated attisdropped:b attislocal:b attinhcount:i attcollation:u attacl:t[] attoptions:t[]
    attfdwoptions:t[] attmissingval
pg_auth_members 1261 r roleid:u member:u grantor:u admin_option:b
pg_authid 1260 r oid:u rolname rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b
    rolbypassrls:b rolconnlimit:i rolpassword rolvaliduntil:z
pg_available_extensions 0 v name default_version installed_version comment
pg_cast 2605 r oid:u castsource:u casttarget:u castfunc:u castcontext castmethod
pg_class 1259 r oid:u relname relnamespace:u reltype:u reloftype:u relowner:u relam:u relfilenode:u reltablespace:u
    relpages:i reltuples:f relallvisible:i reltoastrelid:u relhasindex:b relisshared:b relpersistence relkind
    relnatts:s relchecks:s relhasrules:b relhastriggers:b relhassubclass:b relrowsecurity:b relforcerowsecurity:b
    relispopulated:b relreplident relispartition:b relrewrite:u relfrozenxid:u relminmxid:u relacl:t[]
    reloptions:t[] relpartbound
pg_collation 3456 r oid:u collname collnamespace:u collowner:u collprovider collisdeterministic:b collencoding:i
    collcollate collctype colliculocale collversion
pg_constraint 2606 r oid:u conname connamespace:u contype condeferrable:b condeferred:b convalidated:b conrelid:u
    contypid:u conindid:u conparentid:u confrelid:u confupdtype confdeltype confmatchtype conislocal:b coninhcount:i
    connoinherit:b conkey:i[] confkey:i[] conpfeqop:u[] conppeqop:u[] conffeqop:u[] confdelsetcols:i[] conexclop:u[]
    conbin
pg_conversion 2607 r oid:u conname connamespace:u conowner:u conforencoding:i contoencoding:i conproc condefault:b
pg_cursors 0 v name statement is_holdable:b is_binary:b is_scrollable:b creation_time:z
pg_database 1262 r oid:u datname datdba:u encoding:i datlocprovider datistemplate:b datallowconn:b datconnlimit:i
    datfrozenxid:u datminmxid:u dattablespace:u datcollate datctype daticulocale datcollversion datacl:t[]
pg_db_role_setting 2964 r setdatabase:u setrole:u setconfig:t[]
pg_default_acl 826 r oid:u defaclrole:u defaclnamespace:u defaclobjtype defaclacl:t[]
pg_depend 2608 r classid:u objid:u objsubid:i refclassid:u refobjid:u refobjsubid:i deptype
pg_description 2609 r objoid:u classoid:u objsubid:i description
pg_enum 3501 r oid:u enumtypid:u enumsortorder:f enumlabel
pg_event_trigger 3466 r oid:u evtname evtevent evtowner:u evtfoid:u evtenabled evttags:t[]
pg_extension 3079 r oid:u extname extowner:u extnamespace:u extrelocatable:b extversion extconfig:u[]
    extcondition:t[]
pg_foreign_data_wrapper 2328 r oid:u fdwname fdwowner:u fdwhandler:u fdwvalidator:u fdwacl:t[] fdwoptions:t[]
pg_foreign_server 1417 r oid:u srvname srvowner:u srvfdw:u srvtype srvversion srvacl:t[] srvoptions:t[]
pg_foreign_table 3118 r ftrelid:u ftserver:u ftoptions:t[]
pg_group 0 v groname grosysid:u grolist:u[]
pg_index 2610 r indexrelid:u indrelid:u indnatts:s indnkeyatts:s indisunique:b indnullsnotdistinct:b indisprimary:b
    indisexclusion:b indimmediate:b indisclustered:b indisvalid:b indcheckxmin:b indisready:b indislive:b
    indisreplident:b indkey:i[] indcollation:u[] indclass:u[] indoption:i[] indexprs indpred
pg_indexes 0 v schemaname tablename indexname tablespace indexdef
pg_inherits 2611 r inhrelid:u inhparent:u inhseqno:i inhdetachpending:b
pg_language 2612 r oid:u lanname lanowner:u lanispl:b lanpltrusted:b lanplcallfoid:u laninline:u lanvalidator:u
    lanacl:t[]
pg_largeobject_metadata 2995 r oid:u lomowner:u lomacl:t[]
pg_locks 0 v locktype database:u relation:u page:i tuple:s virtualxid transactionid:u classid:u objid:u objsubid:s
    virtualtransaction pid:i mode granted:b fastpath:b waitstart:z
pg_matviews 0 v schemaname matviewname matviewowner tablespace hasindexes:b ispopulated:b definition
pg_namespace 2615 r oid:u nspname nspowner:u nspacl:t[]
pg_opclass 2616 r oid:u opcmethod:u opcname opcnamespace:u opcowner:u opcfamily:u opcintype:u opcdefault:b
    opckeytype:u
pg_operator 2617 r oid:u oprname oprnamespace:u oprowner:u oprkind oprcanmerge:b oprcanhash:b oprleft:u oprright:u
    oprresult:u oprcom:u oprnegate:u oprcode oprrest oprjoin
pg_opfamily 2753 r oid:u opfmethod:u opfname opfnamespace:u opfowner:u
pg_parameter_acl 6243 r oid:u parname paracl:t[]
pg_partitioned_table 3350 r partrelid:u partstrat partnatts:s partdefid:u partattrs:i[] partclass:u[]
    partcollation:u[] partexprs
pg_policies 0 v schemaname tablename policyname permissive roles:t[] cmd qual with_check
pg_policy 3256 r oid:u polname polrelid:u polcmd polpermissive:b polroles:u[] polqual polwithcheck
pg_prepared_statements 0 v name statement prepare_time:z parameter_types:t[] from_sql:b generic_plans:l
    custom_plans:l
pg_proc 1255 r oid:u proname pronamespace:u proowner:u prolang:u procost:f prorows:f provariadic:u prosupport
    prokind prosecdef:b proleakproof:b proisstrict:b proretset:b provolatile proparallel pronargs:s
    pronargdefaults:s prorettype:u proargtypes:u[] proallargtypes:u[] proargmodes:t[] proargnames:t[] proargdefaults
    protrftypes:u[] prosrc probin prosqlbody proconfig:t[] proacl:t[]
pg_publication 6104 r oid:u pubname pubowner:u puballtables:b pubinsert:b pubupdate:b pubdelete:b pubtruncate:b
    pubviaroot:b
pg_publication_namespace 6237 r oid:u pnpubid:u pnnspid:u
pg_publication_rel 6106 r oid:u prpubid:u prrelid:u prqual prattrs:i[]
pg_publication_tables 0 v pubname schemaname tablename attnames:t[] rowfilter
pg_range 3541 r rngtypid:u rngsubtype:u rngmultitypid:u rngcollation:u rngsubopc:u rngcanonical rngsubdiff
pg_rewrite 2618 r oid:u rulename ev_class:u ev_type ev_enabled is_instead:b ev_qual ev_action
pg_roles 0 v rolname rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b
    rolconnlimit:i rolpassword rolvaliduntil:z rolbypassrls:b rolconfig:t[] oid:u
pg_rules 0 v schemaname tablename rulename definition
pg_seclabel 3596 r objoid:u classoid:u objsubid:i provider label
pg_sequence 2224 r seqrelid:u seqtypid:u seqstart:l seqincrement:l seqmax:l seqmin:l seqcache:l seqcycle:b
pg_sequences 0 v schemaname sequencename sequenceowner data_type:u start_value:l min_value:l max_value:l
    increment_by:l cycle:b cache_size:l last_value:l
pg_settings 0 v name setting unit category short_desc extra_desc context vartype source min_val max_val enumvals:t[]
    boot_val reset_val sourcefile sourceline:i pending_restart:b
pg_shadow 0 v usename usesysid:u usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd valuntil:z useconfig:t[]
pg_shdepend 1214 r dbid:u classid:u objid:u objsubid:i refclassid:u refobjid:u deptype
pg_shdescription 2396 r objoid:u classoid:u description
pg_stat_activity 0 v datid:u datname pid:i leader_pid:i usesysid:u usename application_name client_addr
    client_hostname client_port:i backend_start:z xact_start:z query_start:z state_change:z wait_event_type
    wait_event state backend_xid:u backend_xmin:u query_id:l query backend_type
pg_stat_all_tables 0 v relid:u schemaname relname seq_scan:l seq_tup_read:l idx_scan:l idx_tup_fetch:l n_tup_ins:l
    n_tup_upd:l n_tup_del:l n_tup_hot_upd:l n_live_tup:l n_dead_tup:l n_mod_since_analyze:l n_ins_since_vacuum:l
    last_vacuum:z last_autovacuum:z last_analyze:z last_autoanalyze:z vacuum_count:l autovacuum_count:l
    analyze_count:l autoanalyze_count:l
pg_stat_database 0 v datid:u datname numbackends:i xact_commit:l xact_rollback:l blks_read:l blks_hit:l
    tup_returned:l tup_fetched:l tup_inserted:l tup_updated:l tup_deleted:l conflicts:l temp_files:l temp_bytes:l
    deadlocks:l checksum_failures:l checksum_last_failure:z blk_read_time:d blk_write_time:d session_time:d
    active_time:d idle_in_transaction_time:d sessions:l sessions_abandoned:l sessions_fatal:l sessions_killed:l
    stats_reset:z
pg_stat_user_tables 0 v relid:u schemaname relname seq_scan:l seq_tup_read:l idx_scan:l idx_tup_fetch:l n_tup_ins:l
    n_tup_upd:l n_tup_del:l n_tup_hot_upd:l n_live_tup:l n_dead_tup:l n_mod_since_analyze:l n_ins_since_vacuum:l
    last_vacuum:z last_autovacuum:z last_analyze:z last_autoanalyze:z vacuum_count:l autovacuum_count:l
    analyze_count:l autoanalyze_count:l
pg_statio_all_tables 0 v relid:u schemaname relname heap_blks_read:l heap_blks_hit:l idx_blks_read:l idx_blks_hit:l
    toast_blks_read:l toast_blks_hit:l tidx_blks_read:l tidx_blks_hit:l
pg_statio_user_tables 0 v relid:u schemaname relname heap_blks_read:l heap_blks_hit:l idx_blks_read:l idx_blks_hit:l
    toast_blks_read:l toast_blks_hit:l tidx_blks_read:l tidx_blks_hit:l
pg_statistic_ext 3381 r oid:u stxrelid:u stxname stxnamespace:u stxowner:u stxstattarget:i stxkeys:i[] stxkind:t[]
    stxexprs
pg_stats 0 v schemaname tablename attname inherited:b null_frac:f avg_width:i n_distinct:f most_common_vals
    most_common_freqs:f[] histogram_bounds correlation:f most_common_elems most_common_elem_freqs:f[]
    elem_count_histogram:f[]
pg_subscription 6100 r oid:u subdbid:u subskiplsn subname subowner:u subenabled:b subbinary:b substream:b
    subtwophasestate subdisableonerr:b subconninfo subslotname subsynccommit subpublications:t[]
pg_tables 0 v schemaname tablename tableowner tablespace hasindexes:b hasrules:b hastriggers:b rowsecurity:b
pg_tablespace 1213 r oid:u spcname spcowner:u spcacl:t[] spcoptions:t[]
pg_timezone_abbrevs 0 v abbrev utc_offset:v is_dst:b
pg_timezone_names 0 v name abbrev utc_offset:v is_dst:b
pg_trigger 2620 r oid:u tgrelid:u tgparentid:u tgname tgfoid:u tgtype:s tgenabled tgisinternal:b tgconstrrelid:u
    tgconstrindid:u tgconstraint:u tgdeferrable:b tginitdeferred:b tgnargs:s tgattr:i[] tgargs tgqual tgoldtable
    tgnewtable
pg_ts_config 3602 r oid:u cfgname cfgnamespace:u cfgowner:u cfgparser:u
pg_ts_dict 3600 r oid:u dictname dictnamespace:u dictowner:u dicttemplate:u dictinitoption
pg_ts_parser 3601 r oid:u prsname prsnamespace:u prsstart prstoken prsend prsheadline prslextype
pg_ts_template 3764 r oid:u tmplname tmplnamespace:u tmplinit tmpllexize
pg_type 1247 r oid:u typname typnamespace:u typowner:u typlen:s typbyval:b typtype typcategory typispreferred:b
    typisdefined:b typdelim typrelid:u typsubscript typelem:u typarray:u typinput typoutput typreceive typsend
    typmodin typmodout typanalyze typalign typstorage typnotnull:b typbasetype:u typtypmod:i typndims:i
    typcollation:u typdefaultbin typdefault typacl:t[]
pg_user 0 v usename usesysid:u usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd valuntil:z useconfig:t[]
pg_user_mapping 1418 r oid:u umuser:u umserver:u umoptions:t[]
pg_user_mappings 0 v umid:u srvid:u srvname umuser:u usename umoptions:t[]
pg_views 0 v schemaname viewname viewowner definition
"""
"""What relations these schemas have: name, number, kind, columns; no letter after a column: text."""

INFORMATION_SCHEMA = """
applicable_roles 0 v grantee role_name is_grantable
character_sets 0 v character_set_catalog character_set_schema character_set_name character_repertoire form_of_use
    default_collate_catalog default_collate_schema default_collate_name
check_constraints 0 v constraint_catalog constraint_schema constraint_name check_clause
collations 0 v collation_catalog collation_schema collation_name pad_attribute
column_domain_usage 0 v domain_catalog domain_schema domain_name table_catalog table_schema table_name column_name
column_privileges 0 v grantor grantee table_catalog table_schema table_name column_name privilege_type is_grantable
columns 0 v table_catalog table_schema table_name column_name ordinal_position:i column_default is_nullable
    data_type character_maximum_length:i character_octet_length:i numeric_precision:i numeric_precision_radix:i
    numeric_scale:i datetime_precision:i interval_type interval_precision:i character_set_catalog
    character_set_schema character_set_name collation_catalog collation_schema collation_name domain_catalog
    domain_schema domain_name udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name
    maximum_cardinality:i dtd_identifier is_self_referencing is_identity identity_generation identity_start
    identity_increment identity_maximum identity_minimum identity_cycle is_generated generation_expression
    is_updatable
constraint_column_usage 0 v table_catalog table_schema table_name column_name constraint_catalog constraint_schema
    constraint_name
constraint_table_usage 0 v table_catalog table_schema table_name constraint_catalog constraint_schema
    constraint_name
domain_constraints 0 v constraint_catalog constraint_schema constraint_name domain_catalog domain_schema domain_name
    is_deferrable initially_deferred
domains 0 v domain_catalog domain_schema domain_name data_type character_maximum_length:i character_octet_length:i
    character_set_catalog character_set_schema character_set_name collation_catalog collation_schema collation_name
    numeric_precision:i numeric_precision_radix:i numeric_scale:i datetime_precision:i interval_type
    interval_precision:i domain_default udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name
    maximum_cardinality:i dtd_identifier
element_types 0 v object_catalog object_schema object_name object_type collection_type_identifier data_type
    character_maximum_length:i character_octet_length:i character_set_catalog character_set_schema
    character_set_name collation_catalog collation_schema collation_name numeric_precision:i
    numeric_precision_radix:i numeric_scale:i datetime_precision:i interval_type interval_precision:i domain_default
    udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name maximum_cardinality:i dtd_identifier
enabled_roles 0 v role_name
information_schema_catalog_name 0 v catalog_name
key_column_usage 0 v constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name
    column_name ordinal_position:i position_in_unique_constraint:i
parameters 0 v specific_catalog specific_schema specific_name ordinal_position:i parameter_mode is_result as_locator
    parameter_name data_type character_maximum_length:i character_octet_length:i character_set_catalog
    character_set_schema character_set_name collation_catalog collation_schema collation_name numeric_precision:i
    numeric_precision_radix:i numeric_scale:i datetime_precision:i interval_type interval_precision:i udt_catalog
    udt_schema udt_name scope_catalog scope_schema scope_name maximum_cardinality:i dtd_identifier parameter_default
referential_constraints 0 v constraint_catalog constraint_schema constraint_name unique_constraint_catalog
    unique_constraint_schema unique_constraint_name match_option update_rule delete_rule
role_column_grants 0 v grantor grantee table_catalog table_schema table_name column_name privilege_type is_grantable
role_routine_grants 0 v grantor grantee specific_catalog specific_schema specific_name routine_catalog
    routine_schema routine_name privilege_type is_grantable
role_table_grants 0 v grantor grantee table_catalog table_schema table_name privilege_type is_grantable
    with_hierarchy
routine_privileges 0 v grantor grantee specific_catalog specific_schema specific_name routine_catalog routine_schema
    routine_name privilege_type is_grantable
routines 0 v specific_catalog specific_schema specific_name routine_catalog routine_schema routine_name routine_type
    module_catalog module_schema module_name udt_catalog udt_schema udt_name data_type character_maximum_length:i
    character_octet_length:i character_set_catalog character_set_schema character_set_name collation_catalog
    collation_schema collation_name numeric_precision:i numeric_precision_radix:i numeric_scale:i
    datetime_precision:i interval_type interval_precision:i type_udt_catalog type_udt_schema type_udt_name
    scope_catalog scope_schema scope_name maximum_cardinality:i dtd_identifier routine_body routine_definition
    external_name external_language parameter_style is_deterministic sql_data_access is_null_call sql_path
    schema_level_routine max_dynamic_result_sets:i is_user_defined_cast is_implicitly_invocable security_type
    to_sql_specific_catalog to_sql_specific_schema to_sql_specific_name as_locator created last_altered
    new_savepoint_level is_udt_dependent result_cast_from_data_type result_cast_as_locator
    result_cast_char_max_length:i result_cast_char_octet_length:i result_cast_char_set_catalog
    result_cast_char_set_schema result_cast_char_set_name result_cast_collation_catalog result_cast_collation_schema
    result_cast_collation_name result_cast_numeric_precision:i result_cast_numeric_precision_radix:i
    result_cast_numeric_scale:i result_cast_datetime_precision:i result_cast_interval_type
    result_cast_interval_precision:i result_cast_type_udt_catalog result_cast_type_udt_schema
    result_cast_type_udt_name result_cast_scope_catalog result_cast_scope_schema result_cast_scope_name
    result_cast_maximum_cardinality:i result_cast_dtd_identifier
schemata 0 v catalog_name schema_name schema_owner default_character_set_catalog default_character_set_schema
    default_character_set_name sql_path
sequences 0 v sequence_catalog sequence_schema sequence_name data_type numeric_precision:i numeric_precision_radix:i
    numeric_scale:i start_value minimum_value maximum_value increment cycle_option
sql_features 0 r feature_id feature_name sub_feature_id sub_feature_name is_supported is_verified_by comments
table_constraints 0 v constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name
    constraint_type is_deferrable initially_deferred enforced nulls_distinct
table_privileges 0 v grantor grantee table_catalog table_schema table_name privilege_type is_grantable
    with_hierarchy
tables 0 v table_catalog table_schema table_name table_type self_referencing_column_name reference_generation
    user_defined_type_catalog user_defined_type_schema user_defined_type_name is_insertable_into is_typed
    commit_action
triggers 0 v trigger_catalog trigger_schema trigger_name event_manipulation event_object_catalog event_object_schema
    event_object_table action_order:i action_condition action_statement action_orientation action_timing
    action_reference_old_table action_reference_new_table action_reference_old_row action_reference_new_row created
view_column_usage 0 v view_catalog view_schema view_name table_catalog table_schema table_name column_name
view_table_usage 0 v view_catalog view_schema view_name table_catalog table_schema table_name
views 0 v table_catalog table_schema table_name view_definition check_option is_updatable is_insertable_into
    is_trigger_updatable is_trigger_deletable is_trigger_insertable_into
"""
"""The same for the schema of the SQL standard."""
