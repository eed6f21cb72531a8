;;; oracle.el --- Emacs's own opinion of s-expressions  -*- lexical-binding: t; -*-

;;; Commentary:

;; Run by the test `sexp_oracle' in batch mode.  Each line of standard input is a command letter
;; and, after a space, its argument; each is answered with one line:
;;
;;   S SEED  seeds the random numbers                                  -> ok
;;   N I     makes the Ith value of the nasty table current, prints it -> PRINTED, or `end'
;;   G       makes a random value current and prints it                -> PRINTED
;;   O       makes a random value with an object that is not data, and prints it  -> PRINTED
;;   C TEXT  reads TEXT and compares it with the current value         -> ok, or what differs
;;   R TEXT  reads TEXT and prints what it read                        -> PRINTED
;;   E TEXT  the same, all of it ASCII, other characters escaped       -> PRINTED

;;; Code:

(require 'seq)
(set-language-environment "UTF-8")
(setq locale-coding-system 'utf-8-unix
      max-lisp-eval-depth 100000
      max-specpdl-size 100000)

(defvar oracle-current nil "The value that C compares with.")

(defun oracle-print (value &optional ascii circle)
  "Print VALUE as a client would, with ASCII characters only if ASCII.
Label what is circular or shared if CIRCLE."
  (let ((print-escape-newlines t)
        (print-escape-multibyte ascii)
        (print-quoted (zerop (random 2)))
        (print-circle circle)
        (print-gensym t)
        print-length print-level float-output-format)
    (prin1-to-string value)))

(defun oracle-equal (a b)
  "Whether A and B are the same data, to the sign of a zero or NaN.
No string in A has text properties."
  (cond
   ((and (consp a) (consp b))
    (while (and (consp a) (consp b) (oracle-equal (car a) (car b)))
      (setq a (cdr a) b (cdr b)))
    (and (not (consp a)) (not (consp b)) (oracle-equal a b)))
   ((and (floatp a) (floatp b))
    (if (isnan a) (equal (prin1-to-string a) (prin1-to-string b)) (eql a b)))
   ((and (stringp a) (stringp b)) (and (equal a b) (not (object-intervals a))))
   ((and (vectorp a) (vectorp b)) (oracle-equal (append a nil) (append b nil)))
   (t (equal a b))))

(defun oracle-pick (&rest choices)
  "One of CHOICES."
  (nth (random (length choices)) choices))

(defun oracle-characters (pool length)
  "A string of LENGTH characters from the list POOL."
  (apply #'string (mapcar (lambda (_) (apply #'oracle-pick pool)) (number-sequence 1 length))))

(defvar oracle-name-pool
  (append "ab1+-.?#'\"`,;()[]\\ {}|~@:&e5INFaN\t\0\177/!$%^*_=<>" '(#xa0 #xe9 #x3bb #x1f600 #x201c #xff07)
          nil))

(defvar oracle-text-pool
  (append "ab1 0a9fAF\"\\(;?#\n\r\t\0\1\33\177" '(#x80 #x85 #xa0 #xe9 #x3bb #x1f600 #x2028 #xfeff #xfffd)
          nil))

(defun oracle-name ()
  "A name without line ends."
  (oracle-characters oracle-name-pool (random 6)))

(defun oracle-string ()
  "Text, bytes, or text with bytes in it."
  (pcase (random 6)
    (0 (apply #'unibyte-string (mapcar (lambda (_) (random 256)) (number-sequence 1 (random 9)))))
    (1 (concat (string #xe9) (string-to-multibyte (unibyte-string (+ 128 (random 128)))) "7a"))
    (2 (make-string (random 300) ?x))
    (_ (oracle-characters oracle-text-pool (random 12)))))

(defun oracle-float ()
  "Any float."
  (pcase (random 4)
    (0 (oracle-pick 0.0 -0.0 1.0e+INF -1.0e+INF 0.0e+NaN -0.0e+NaN 7.0e+NaN 1e300 5e-324 1e21 1e5))
    (1 (/ (random 1000) 8.0))
    (_ (* (- (random) 0.5) (expt 10.0 (- (random 600) 300))))))

(defun oracle-integer ()
  "Any integer."
  (pcase (random 5)
    (0 (random 100))
    (1 (oracle-pick most-positive-fixnum most-negative-fixnum (1+ most-positive-fixnum)
                    (1- most-negative-fixnum) (expt 2 63) (- (expt 2 63)) (1- (- (expt 2 63)))))
    (2 (* (random) (random) (random)))
    (_ (random))))

(defun oracle-propertized (depth)
  "A string with properties, nested to DEPTH at most."
  (let ((string (concat "x" (oracle-characters oracle-text-pool (random 9)) "y")))
    (put-text-property 0 (1+ (random (1- (length string)))) (intern (concat "p" (oracle-name)))
                       (oracle-value (1- depth)) string)
    (when (zerop (random 2))
      (put-text-property (random (1- (length string))) (length string) 'face 'bold string))
    string))

(defun oracle-object (depth)
  "An object that is not data.  Data in it nest to DEPTH at most."
  (pcase (random 14)
    (0 (apply #'record 'oracle (oracle-values depth 0)))
    (1 (let ((table (make-hash-table :test (oracle-pick 'eq 'eql 'equal))))
         (dotimes (_ (random 4) table)
           (puthash (random 100) (oracle-value (1- depth)) table))))
    (2 (make-bool-vector (random 20) t))
    (3 (make-byte-code 0 "\300\207" (vector (oracle-value (1- depth))) 1))
    (4 (let ((list (oracle-values depth 1))) (nconc list list)))
    (5 (let ((vector (vector 1 nil))) (aset vector 1 vector)))
    (6 (current-buffer))
    (7 (copy-marker 1))
    (8 (make-char-table 'oracle))
    (9 (make-symbol (concat "a" (oracle-name))))
    (10 (symbol-function 'car))
    (11 (make-overlay 1 1))
    (12 (selected-window))
    (_ (propertize "x" 'display (list 'when (oracle-object depth) "y")))))

(defun oracle-around (object depth)
  "A value that has OBJECT in it, up to DEPTH levels down."
  (if (or (= depth 0) (zerop (random 4)))
      object
    (let ((values (oracle-values depth 1)) (inner (oracle-around object (1- depth))))
      (setcar (nthcdr (random (length values)) values) inner)
      (pcase (random 4)
        (0 (vconcat values))
        (1 (append values inner))
        (2 (list 'quote inner))
        (_ values)))))

(defun oracle-values (depth least)
  "A list of LEAST values or more, nested to DEPTH at most."
  (mapcar (lambda (_) (oracle-value (1- depth))) (number-sequence 1 (+ least (random 5)))))

(defun oracle-value (depth)
  "Any value, nested to DEPTH at most."
  (pcase (random (if (> depth 0) 15 8))
    (0 (oracle-integer))
    (1 (oracle-float))
    ((or 2 3) (oracle-string))
    ((or 4 5) (intern (oracle-name)))
    (6 (intern (concat ":" (oracle-name))))
    (7 (oracle-pick nil t (random 256) 'quote '\` '\, '\,@ 'function))
    ((or 8 9 10) (oracle-values depth 0))
    (11 (append (oracle-values depth 1) (oracle-value 0)))
    (12 (vconcat (oracle-values depth 0)))
    (13 (oracle-propertized depth))
    (14 (list (oracle-pick 'quote 'function '\` '\, '\,@) (oracle-value (1- depth))))))

(defvar oracle-nasty
  (list
   '1+ '1- '3d-thing '1e5x '+1x '- '+ '-- '-1x (intern "1") (intern "-1") (intern "1e5") (intern "1.5")
   (intern "1.e5") (intern "1e+INF") (intern "0.0e+NaN") (intern ".5") (intern "") (intern "a b")
   (intern ",") (intern "`") (intern "'") (intern "?a") (intern "a?b") (intern ".foo") (intern ".")
   (intern "..") (intern "...") (intern "a.b") (intern "a#b") (intern "a;b") (intern "a[b]") (intern "a\"b")
   (intern "a\\b") (intern "a\tb") (intern "\0") (intern "\177") (intern (string #xa0)) 'λ '😀 '{x}
   '“a (intern "(defun x ())") (intern "#<buffer>") 'slynk::%cursor-marker% 'a|b '&rest : (intern ":a b")
   :λ (intern ":?") (intern ":1")
   0 -1 most-positive-fixnum most-negative-fixnum (expt 2 61) (expt 2 63) (- (expt 2 63)) (expt 10 40)
   (- (expt 10 40))
   1e300 5e-324 1e5 1e21 0.1 -0.0 100000.0 123456789012.5 1.0e+INF -1.0e+INF 0.0e+NaN -0.0e+NaN
   "" "a\nb\rc\td" "\0\1\33\177" "\"\\" "a\33b" "\0001" "\1777" "λ😀" "\377" "\200\377a" "é\377" "é\2007"
   "x41" "\x7f\ a" (string #x80) (string #xff) (string #x2028 #xfeff)
   nil t '(nil) '(a . b) '(a b . c) '(a . [b]) '(a quote b) '(a . (quote b)) '(quote) '(quote a b) '(quote . a)
   '(function f) ''a '#'f '`(a ,b ,@c) '(\, a) '(\,@ a b) '[] '[a [b] (c)] '((((a))))
   (propertize "x" 'face 'bold) (concat "a" (propertize "λ" 'p '(1 "q")) "b")
   ?\M-x ?\C-\s ?\s-a
   (make-list 1000 'a) (make-string 100000 ?λ))
  "Values that trip readers and printers.")

(defun oracle-answer (command argument)
  "Do COMMAND with ARGUMENT and return the answer's text."
  (pcase command
    (?S (random argument) "ok")
    (?N (let ((index (string-to-number argument)))
          (if (>= index (length oracle-nasty))
              "end"
            (oracle-print (setq oracle-current (nth index oracle-nasty))))))
    (?G (oracle-print (setq oracle-current (oracle-value 4))))
    (?O (oracle-print (oracle-around (oracle-object 3) 3) nil (zerop (random 2))))
    (?C (let ((value (oracle-read argument)))
          (if (oracle-equal value oracle-current)
              "ok"
            (format "differs: %S, wanted %S" value oracle-current))))
    (?R (oracle-print (oracle-read argument)))
    (?E (oracle-print (oracle-read argument) t))))

(defun oracle-read (text)
  "Read TEXT, which must be one datum and nothing else."
  (let ((read (read-from-string text)))
    (unless (= (cdr read) (length text))
      (error "Only %d of %d characters were read" (cdr read) (length text)))
    (car read)))

(let (line)
  (while (setq line (ignore-errors (read-from-minibuffer "")))
    (princ (condition-case failure
               (oracle-answer (aref line 0) (and (> (length line) 2) (substring line 2)))
             (error (format "error: %S" failure))))
    (terpri)))

;;; oracle.el ends here
