-- 300,000 orders, two indexes, joins and sorts, all in memory.
create table customers(id integer primary key, name text, city text);
create table orders(id integer primary key, customer integer, item text, amount real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 50000)
insert into customers select i, printf('customer-%d', i * 7919 % 50000), printf('city-%d', i % 311) from n;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000)
insert into orders select i, i * 6151 % 50000 + 1, printf('item %d of series %d', i % 997, i % 31), i % 1000 / 7.0 from n;
create index by_customer on orders(customer);
create index by_item on orders(item);
select city, count(*), round(sum(amount), 2) from customers join orders on orders.customer = customers.id
  group by city order by 3 desc, 1 limit 10;
select item, count(distinct customer) from orders group by item order by 2 desc, 1 limit 10;
