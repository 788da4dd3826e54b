"""Everyday words outside of a shop, in English and Chinese: what strangers may ask a chat page about."""


def words(text):
    return [w.strip() for w in text.replace("\n", " ").split(",")]


THINGS = words(
    """apple, army, baby, bank, battery, beach, bear, bed, bee, bird, black hole, blood, board game, boat, bone, bottle, box, brain,
    bread, bridge, bus, butter, button, cake, camel, candle, car, castle, cat, cell, cheese, chicken, child, church, cigarette, clock,
    cloud, coin, comet, computer, contract, cow, crown, database, desert, diamond, dinner, dog, door, dragon, dream, drum, duck,
    earthquake, egg, electron, elephant, elevator, engine, essay, eye, family, farm, feather, fire, fish, flag, flower, forest, fox,
    fridge, friend, frog, game, garden, ghost, giraffe, glacier, goat, golf, grandmother, grass, guitar, gun, hair, hamburger, hammer,
    heart, helicopter, hill, holiday, horse, hospital, house, hurricane, ice cream, insect, iron, island, job interview, kitchen, knee,
    knife, ladder, lake, language, lawyer, leaf, lemon, letter, library, lion, loan, logo, loop, machine, magnet, mango, map, marriage,
    meeting, microscope, milk, mirror, monkey, monster, mosquito, motor, mountain, mushroom, nail, neuron, nose, novel, number, ocean,
    octopus, olive, onion, owl, painting, panda, parrot, passport, pasta, pen, penguin, phone, photo, piano, pig, pillow, pirate,
    planet, plant, podcast, pony, potato, president, prime number, pyramid, queen, rabbit, radio, rain, rainbow, recipe, ring, river,
    robot, rock, rocket, roof, rose, salt, sandwich, school, sea, secret, shadow, shark, sheep, ship, shirt, shoe, shower, skeleton,
    snake, snow, soap, soldier, song, speech, spider, spoon, star, startup, steak, stone, storm, story, street, sugar, sun, swimming
    pool, sword, table, tax, teacher, telescope, temple, theatre, tiger, tomato, tooth, tornado, tower, train, tree, triangle, truck,
    tunnel, turtle, uncle, universe, vacuum, vampire, video, village, violin, virus, volcano, wall, war, water, website, wedding,
    whale, wheel, wind, window, wine, witch, wolf, woman, wood, world war, yacht, yoghurt, zombie, spaceship, hat, fridge magnet,
    poem, haiku, resume, cover letter, bicycle, motorbike, kite, puzzle, marathon, coffee, pancake, omelette, curry, noodle soup"""
)
SUBJECTS = words(
    """algebra, astronomy, biology, blockchain, botany, calculus, chemistry, climate change, cricket, cryptography, dance, democracy,
    economics, evolution, existentialism, fashion, fishing, gardening, geography, geometry, grammar, gravity, happiness, hockey,
    inflation, jazz, judo, karate, knitting, lightning, linear algebra, literature, logic, love, machine learning, magic, mathematics,
    meditation, mythology, neural networks, nutrition, opera, paleontology, photosynthesis, physics, pottery, psychology, recursion,
    relativity, rugby, sailing, sculpture, sleep, sociology, sorting algorithms, statistics, surfing, taxes, tennis, the big bang, the
    brain, the economy, the election, the french revolution, the internet, the middle ages, the moon landing, the ozone layer, the
    roman empire, the weather, time travel, trigonometry, volcanoes, world history, yoga, zoology, Bitcoin, Java, Rust, Linux, Excel,
    Shakespeare, Napoleon, Einstein, Mozart, Cleopatra, Buddhism, Mars, Jupiter, Antarctica, the Titanic, the Beatles, the Olympics"""
)
DEEDS = words(
    """bake a cake, boil an egg, book a flight, bowl, brush my teeth, build a house, buy a house, calculate a square root, call a taxi,
    change a tyre, clean a window, climb a mountain, code, compose a song, cook rice, count to ten, cut my hair, dance, debug this,
    dig a well, do a backflip, do my homework, draw a cat, dream, drive a car, eat less sugar, fall asleep, feed a dog, find a job,
    find love, fix my computer, fix my sink, fly a plane, fold a shirt, get rich, get taller, go to the moon, grow tomatoes, watch a
    website, hear me, invest money, juggle, jump higher, learn to swim, learn french, lose weight, make a fire, make
    friends, make money, make pizza, meditate, milk a cow, open a bank account, paint a wall, pass an exam, plan a trip, plant a tree,
    play chess, play the piano, pray, predict the future, quit smoking, raise a child, read my mind, remove a stain, ride a horse, run
    a marathon, save money, search the web, see me, sing a song, sleep better, solve an equation, speak german, start a business, stay
    calm, stop a nosebleed, study law, tell the time, tie a tie, train a dog, travel the world, treat a cold, turn on the light, use a
    compass, vote, wash a car, watch a film, write a novel, write code, write a letter, set an alarm, send an email, make me a sandwich"""
)
LANDS = words(
    """France, Germany, Spain, Italy, Portugal, Greece, Poland, Sweden, Norway, Finland, Denmark, Ireland, Scotland, Iceland, Russia,
    Ukraine, Turkey, Egypt, Kenya, Nigeria, Morocco, Ghana, Ethiopia, South Africa, India, Pakistan, Nepal, China, Japan, Korea,
    Vietnam, Thailand, Indonesia, the Philippines, New Zealand, Canada, Mexico, Brazil, Argentina, Chile, Peru, Colombia, Cuba,
    Jamaica, Iran, Iraq, Israel, Saudi Arabia, Mongolia, Switzerland, Austria, Hungary, Romania, the United States, Europe, Africa"""
)
TONGUES = words(
    "French, German, Italian, Japanese, Russian, Arabic, Korean, Latin, Portuguese, Hindi, Greek, Dutch, Turkish, Swedish"
)
FEELINGS = words(
    """sad, tired, hungry, bored, happy, sick, lost, confused, excited, scared, sleepy, thirsty, stressed, nervous, in love, drunk,
    cold, hot, busy, late, depressed, afraid, jealous, proud, worried, so tired, very sad, really bored, a bit hungry, not well,
    not sure, just looking around, only testing, curious, annoyed, at work, at home, on the train, in bed, feeling down, heartbroken"""
)
QUALITIES = words(
    """big, small, fast, slow, old, new, red, tall, deep, expensive, cheap, dangerous, funny, sad, heavy, light, beautiful, ugly, smart,
    strange, famous, strong, weak, hot, cold, rich, poor, long, short, loud, quiet, sweet, round, dark, bright, lucky, healthy, rare"""
)
OPINIONS = words(
    """I like, I love, I hate, I prefer, I miss, I saw, I need, I want, I am scared of, I dreamed about, I am thinking about, let's talk
    about, I read about, my friend has, we visited, I watched, I lost, I found, there is, have you seen, we talked about, imagine"""
)
THINGS_Z = words(
    """苹果, 飞机, 大象, 火山, 海洋, 恐龙蛋, 机器, 电脑, 手机屏幕, 电影院, 小说, 诗, 作文, 论文, 歌, 故事, 钢琴, 吉他, 足球赛, 篮球, 乒乓球, 比赛, 学校, 老师, 医院,
    医生, 律师, 银行, 股票, 基金, 房子, 汽车, 火车, 地铁, 公交车, 自行车, 轮船, 宇宙飞船, 火星, 太阳, 月球, 星星, 地球, 黑洞, 彩虹, 雪, 台风, 地震, 沙漠, 森林, 河流, 长江,
    黄河, 长城, 故宫, 泰山, 熊猫, 老虎, 狮子, 猫, 狗, 鱼, 鸟, 蛇, 蜜蜂, 蚊子, 鸡蛋, 牛奶, 面包, 火锅, 饺子馅, 红烧肉, 蛋糕, 咖啡豆, 茶叶, 水果, 蔬菜, 米饭, 糖, 盐,
    春节, 中秋节, 生日会, 婚礼, 爱情, 友谊, 梦, 幸福, 时间, 历史, 哲学, 数学题, 方程, 函数, 程序, 算法, 数据库, 网站, 病毒, 细胞, 基因, 原子, 量子, 相对论, 进化论, 经济,
    通货膨胀, 选举, 战争, 皇帝, 唐朝, 李白, 孔子, 爱因斯坦, 牛顿, 莎士比亚, 机器学习, 人工智能, 区块链, 比特币, 围棋, 象棋, 游戏, 动漫, 京剧, 书法, 国画, 瑜伽, 跑步, 游泳, 减肥"""
)
DEEDS_Z = words(
    """做饭, 煮鸡蛋, 学英语, 学游泳, 写代码, 写作业, 写作文, 写情书, 画画, 唱歌, 跳舞, 减肥, 赚钱, 存钱, 买房, 开车, 修电脑, 修水管, 换轮胎, 种花, 养猫, 养狗, 订机票, 订酒店, 打车,
    睡个好觉, 戒烟, 下棋, 弹钢琴, 背单词, 考驾照, 找工作, 交朋友, 追女生, 炒股, 做蛋糕, 包饺子, 算命, 做瑜伽, 跑马拉松, 爬山, 潜水, 拍照, 剪视频, 做网站, 上网, 翻译这句话,
    解方程, 算数, 定闹钟, 发邮件, 放音乐, 开灯, 讲故事, 写诗, 起名字, 画一只猫, 预测未来, 读懂我的心"""
)
LANDS_Z = words(
    "法国, 德国, 西班牙, 意大利, 希腊, 波兰, 瑞典, 挪威, 芬兰, 丹麦, 冰岛, 俄罗斯, 土耳其, 埃及, 肯尼亚, 南非, 印度, 日本, 韩国, 越南, 泰国, 新西兰, 加拿大, 墨西哥, 巴西, 阿根廷, "
    "智利, 古巴, 伊朗, 以色列, 蒙古, 瑞士, 奥地利, 美国, 英国, 中国, 欧洲, 非洲"
)
FEELINGS_Z = words(
    "难过, 累, 饿, 无聊, 开心, 生病了, 迷茫, 激动, 害怕, 困, 渴, 压力好大, 紧张, 失恋了, 冷, 很忙, 郁闷, 伤心, 高兴, 想家, 睡不着, 好烦, 头疼, 有点累"
)
