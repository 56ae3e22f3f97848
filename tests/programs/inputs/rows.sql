-- Builds a table of @ROWS@ rows, indexes it and asks about it; every answer is the same on each run.
pragma journal_mode = memory;
pragma cache_size = -65536;
create table item (id integer primary key, category integer, name text, price real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < @ROWS@)
  insert into item select i, (i * 7919) % 1009, 'item ' || ((i * 104729) % 1000003), (i * 31 % 10007) / 100.0 from n;
create index item_category on item (category, price);
create index item_name on item (name);
select count(*), count(distinct category), count(distinct name), round(sum(price), 2) from item;
select category, count(*), round(avg(price), 3) from item group by category order by 3 desc, 1 limit 5;
select a.id, b.id from item a join item b on a.name = b.name and a.id < b.id order by a.id, b.id limit 5;
select substr(group_concat(name), 1, 200) from (select name from item order by name desc limit 1000);
update item set name = upper(name) || hex(category) where category % 3 = 0;
delete from item where id % 5 = 0;
select count(*), sum(length(name)), max(name) from item;
create temp table wide as select json_object('id', id, 'name', name, 'price', price) j from item where id % 4 = 0;
select count(*), sum(length(j)), sum(json_extract(j, '$.id')) from wide;
pragma integrity_check;
