var e=`Pago
{title} – {shop}
Prueba: {title}
Modo de prueba
: no se mueve dinero real
Con la tecnología de
Licencias
{shop} es un servicio de {name}
Ayuda
Condiciones
Privacidad
Tienda
Paso {step} de 4
Cargando…
Está tardando más de lo normal. Deja la página abierta.
Comprar
Vender
Cambiar
Valor
Pagas
Recibes
Envías
Has pagado
Has enviado
En camino
Enviado a ti
A pagar
Tipo de cambio
Paga antes de
¿Qué quieres hacer?
Comprar cripto
Vender cripto
Cambiar cripto
Tipo de operación
{side}: seleccionado.
Pagas {amount}
Con {methods}
Recibes {amount}
Unos {amount} hoy. Ves todas las comisiones antes de pagar.
Ves todas las comisiones antes de pagar.
Necesitas una dirección de monedero
De una aplicación de monedero o de tu cuenta en una plataforma
Envías cripto desde tu monedero
Necesitas tu IBAN
Necesitas tus datos bancarios
Envías una criptomoneda
Recibes otra, por un valor de unos {amount}
Necesitas una dirección de monedero para la nueva
Tu compra
Tu venta
Tu cambio
Compras
Vendes
Red
En la red
Pagar con
Recibir por
≈ {amount}
Comisiones {amount}
Normalmente {time}
Normalmente de {from} a {to}
La dirección de tu monedero
Pegar
Pegar la dirección
Comprueba que este monedero acepta {asset} en {network}.
Válida en {network}. Termina en {end}.
Fijada por {shop}
Escribe la dirección de tu monedero.
Parece que un carácter de esta dirección está mal. Cópiala otra vez desde tu monedero.
Es una dirección para {others}. Has elegido {network}. Cambia la red o usa otra dirección.
Esta es la dirección del propio {asset}, no de un monedero. Lo que se envía a ella se pierde.
Nadie puede usar criptomonedas en esta dirección. Copia la dirección de tu propio monedero.
Esto no es una dirección de {network}. Copia la dirección completa desde tu monedero.
Esta dirección no puede recibir {asset} en {network}. Copia la dirección de tu propio monedero.
Esto es un nombre, no una dirección. Copia desde tu monedero la dirección que empieza por 0x.
Esto es un nombre, no una dirección. Copia la propia dirección desde tu monedero.
La dirección la ha fijado {shop} y no se puede cambiar. Vuelve a cargar la página.
Tu IBAN
Puedes dejar los espacios.
Escribe el IBAN de tu cuenta.
Este IBAN tiene una errata. Compáralo con la aplicación de tu banco.
Titular de la cuenta
Escribe el nombre como lo escribe tu banco, de 2 a 70 caracteres.
{field} (opcional)
Sort code
Escribe los 6 dígitos del sort code.
Número de cuenta
Escribe los 8 dígitos del número de cuenta.
Escribe los 4 a 17 dígitos del número de cuenta.
Número de ruta
Este número de ruta tiene una errata.
Tipo de cuenta
Cuenta corriente
Cuenta de ahorro
Transferencia SEPA
Tarjeta
Faster Payments
Transferencia ACH
Tu precio
En {network}, a {rate}
Cambiado por {asset}
Comisión de servicio
Comisión de red, {network}
Precio reservado. Lo renovamos por ti.
Precio reservado. Si cambia, te preguntamos otra vez.
El precio se renueva solo
Cargando el precio…
Recibes {get}. Pagas {give}, con {fees} de comisiones incluidas.
Envías {give}. Recibes {get}, ya descontadas las comisiones de {fees}.
El precio ha cambiado.
Recibes {amount} menos que antes.
Recibes {amount} más que antes.
Envías {amount} más que antes.
Envías {amount} menos que antes.
Pagas lo mismo.
Recibes lo mismo.
Envías lo mismo.
Las comisiones eran de {before} y ahora son de {now}.
El tipo de cambio era {before}. Los importes son los mismos.
Antes: {amount}
Pulsa otra vez el botón si estás de acuerdo.
El precio ha caducado. Este es el nuevo; pulsa otra vez el botón si estás de acuerdo.
Parece que este pago está abierto en otra ventana. Pulsa otra vez el botón para pagar aquí.
Este precio ya no está al día.
Ver el precio actual
Confirma tu identidad
Para este importe necesitamos saber quién eres. Las preguntas las hace nuestro socio.
Empezar con nuestro socio
Vuelve a esta página cuando termines. Continúa sola.
Abrir otra vez
Estamos comprobando tus datos. Puedes dejar esta página abierta.
Identidad confirmada.
No se ha podido confirmar tu identidad, así que este pago no puede continuar. Vuelve a {shop} para pagar de otra forma.
Enviar
Comprobar y pagar
Comprobar y vender
Comprobar y cambiar
¿Es esta tu dirección? Una transferencia de cripto no se puede deshacer.
¿Es esta tu cuenta?
A tu monedero
A tu cuenta
Pagar {amount}
Vender {amount}
Cambiar {amount}
Pagando…
Un momento…
Después: los datos bancarios para tu transferencia.
Después: la dirección a la que envías.
Después: los datos de tu tarjeta en el proveedor de pagos.
Haz la transferencia
Copia estos valores en la aplicación de tu banco.
No olvides la referencia.
Con ella encontramos tu pago.
Envía {amount}
Envíalo por
, en una sola transferencia.
Escanea con tu monedero o copia los dos valores
O escanea este código con la aplicación de tu banco
Abrir en la aplicación del monedero
Cantidad exacta, {asset}
Dirección en {network}
Código QR de estos valores, que también aparecen como texto
Paga en tu banco o en la emisora de tu tarjeta
Pagas en una página del proveedor de pagos.
Abrir la página de pago
Confirma la transferencia en tu monedero.
Confirma en tu monedero
Esperando tu transferencia
Esperando tus {asset}
Esperando tu pago
Esta página se actualiza sola.
Ya he hecho la transferencia
Ya he enviado los {asset}
Esto es una prueba: no envíes nada a esta dirección
Esto es una prueba: no pagues nada. No se mueve dinero.
Simular el envío
Simular el pago
Copiar
Copiado
Copiar {field}
Copiado: {field}.
Pulsa Ctrl+C (⌘C) para copiar. El texto está seleccionado.
Han llegado {received} de {required}.
Envía los {rest} restantes de la misma forma.
Han llegado {received}; se pedían {required}. El proveedor de pagos devuelve la diferencia.
El plazo para pagar ha terminado: no envíes nada más. Si ya has pagado, espera aquí. El pago se completará o recibirás el dinero de vuelta.
Titular de la cuenta
IBAN
BIC
Referencia
Importe
Dirección
Memo (obligatorio)
Estamos en ello
En cuanto llegue tu transferencia, enviamos {get} a tu monedero.
En cuanto se confirme tu pago, enviamos {get} a tu monedero.
En cuanto lleguen tus {asset}, enviamos {get} a tu cuenta.
En cuanto lleguen tus {asset}, enviamos {get} a tu monedero.
Orden recibida
Llegada: {what}
Transferencia
Pago
Envío: {what}
Dinero
Puedes cerrar esta página. {shop} recibe el resultado en todo caso.
Ver los datos bancarios
Ver los datos del pago
Cancelar este pago
{amount} enviados
{amount} van de camino
De camino a tu monedero en {network}.
A tu cuenta {account}.
A tu cuenta bancaria.
Comisiones, incluidas
Fecha
Comercio
Guarda la referencia.
Guardar recibo
Puedes cerrar esta página.
Puedes volver a la tienda.
Volver a {shop}
Volver a la tienda
Cerrar
El pago ha sido rechazado
La emisora de la tarjeta lo ha rechazado sin dar un motivo. Inténtalo otra vez o paga de otra forma.
El banco lo ha rechazado sin dar un motivo. Inténtalo otra vez o paga de otra forma.
El pago no se ha realizado
No conocemos el motivo. Inténtalo otra vez o paga de otra forma.
Ha llegado un importe distinto del pedido. El proveedor de pagos lo devuelve.
El dinero no ha llegado a tiempo. Si lo has enviado, el proveedor de pagos lo devuelve.
El dinero se devolvió antes de que el pago se completara.
El banco, la emisora de la tarjeta o la red lo ha rechazado. El proveedor de pagos devuelve lo que ha llegado.
Pagado con
Intentado con
Si ha salido dinero de tu cuenta, no pagues otra vez. Da esta referencia a {shop}.
Si los {asset} han salido de tu monedero, no los envíes otra vez. Da esta referencia a {shop}.
Intentar otra vez
Elegir otra forma de pago
Elegir otra criptomoneda
Cancelar y volver a {shop}
Cancelar
¿Cancelar este pago?
No se ha pagado nada.
¿Ya has enviado el dinero? Entonces no canceles.
Si has enviado el dinero, cancelar no lo devuelve.
Seguir
Seguir esperando
Cancelar el pago
Cancelando…
El pago se ha cancelado. Puedes pagar otra vez o volver a la tienda.
No disponible ahora mismo
Este pago no es posible aquí en este momento. Elige otra forma de pago en la tienda.
Este enlace de pago está incompleto. Ábrelo otra vez desde la tienda.
Este pago ha caducado
No se ha pagado nada. Empieza de nuevo en la tienda.
Este pago se ha cancelado
No se ha pagado nada.
Este pago está cerrado
La tienda muestra el estado de tu pedido.
Si has enviado dinero, guarda esta referencia: {reference} y pregunta a {shop}.
Esta página ya no puede continuar
Abre otra vez el pago desde la tienda. Nada se paga dos veces.
No tienes conexión
Lo intentamos de nuevo en cuanto vuelva la conexión. Nada se paga dos veces.
Intentar ahora
Vuelves a tener conexión.
Estamos comprobando tu pago
No pudimos conectar con el servicio de pago mientras pagabas. No pagues otra vez. Esta página muestra el resultado por sí sola.
Continuar
Atrás
Ahora mismo no hay precio para {asset}. Inténtalo otra vez o elige otra criptomoneda.
{asset} no se ofrece en esta red ahora mismo. Elige otra.
El importe de este pedido está fuera de los límites de esta opción. Elige otra.
Posible: de {min} a {max}.
Ninguna opción admite aquí el importe de este pedido.
Ha habido demasiadas solicitudes. Lo intentamos de nuevo en {seconds} segundos.
Es tarde para cancelar: el pago se está ejecutando.
No hemos podido conectar con el servicio de pago. Nada se paga dos veces. Inténtalo otra vez.
Referencia: {id}
Este pago ya está en marcha.`.split(`
`);export{e as messages};
