;;; contexture-wire-tests.el --- Tests of the line format  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; These need no server.

;;; Code:

(require 'contexture-test-helper)

(defun contexture-wire-tests--line (message)
  "Return the line for MESSAGE, checking that it is one."
  (let ((line (car (contexture--encode message))))
    (should (= (cl-count ?\n line) 1))
    (should (string-suffix-p "\n" line))
    line))

(ert-deftest contexture-wire-encodes-on-one-line ()
  (let ((message '(:id 1 :method "x"
                   :params (:content "a\nb\r\n\tc\0\e" :list ("x" (1 . 2) [3 "y"])
                            :float 1.5 :true t :key :code))))
    (should (equal (read (contexture-wire-tests--line message)) message))))

(ert-deftest contexture-wire-ignores-the-users-print-settings ()
  (let* ((message (list :a (number-sequence 1 50) :b (make-string 300 ?x) :c ''q))
         (print-length 3) (print-level 2) (print-circle t) (print-quoted t)
         (print-escape-nonascii t) (float-output-format "%.1f"))
    (should (equal (read (contexture-wire-tests--line message)) message))))

(ert-deftest contexture-wire-sends-no-text-properties ()
  (should (equal (contexture-wire-tests--line
                  (list :a (propertize "fé" 'face 'bold 'big (make-string 99 ?x))))
                 "(:a \"fé\")\n")))

(ert-deftest contexture-wire-replaces-and-counts-what-is-no-text ()
  (pcase-dolist (`(,text ,expected ,count)
                 `(("plain" "plain" 0)
                   ("é λ 😀" "é λ 😀" 0)
                   ("\ud7ff\ue000\U0010ffff" "\ud7ff\ue000\U0010ffff" 0)
                   ("\377a" "\ufffda" 1)
                   (,(string #xd800 ?x #xdfff) "\ufffdx\ufffd" 2)
                   (,(decode-coding-string "\377ok\200" 'utf-8) "\ufffdok\ufffd" 2)
                   (,(string #x110000) "\ufffd" 1)
                   (,(string ?é #x1fffff #x200000 #x3fff7f) "é\ufffd\ufffd\ufffd" 3)))
    (pcase-let ((`(,line . ,replaced) (contexture--encode (list :a text))))
      (should (equal (read line) (list :a expected)))
      (should (= replaced count))
      (should (equal line (decode-coding-string
                           (encode-coding-string line 'utf-8-unix) 'utf-8-unix))))))

(ert-deftest contexture-wire-tells-escapes-from-printed-backslashes ()
  (pcase-dolist (`(,text ,is-plain)
                 '(("a" t) ("\\1" t) ("\\\\7" t) ("\\n" t)
                   ("\300" nil) ("\\\300" nil) ("\\\\\3001" nil)))
    (let ((print-escape-newlines t))
      (should (eq (and (contexture--plain-p (prin1-to-string (list :a text))) t)
                  is-plain)))))

(ert-deftest contexture-wire-refuses-a-symbol-with-a-newline ()
  (should (string-match-p "newline"
                          (cadr (should-error
                                 (contexture--encode (list :a (intern "x\ny")))
                                 :type 'contexture-error)))))

(ert-deftest contexture-wire-decodes-messages-only ()
  (should (equal (contexture--decode "(:id 1 :result nil)") '(:id 1 :result nil)))
  (dolist (line '("" "  " "; comment" "  ; comment"))
    (should-not (contexture--decode line)))
  (dolist (line '("(:id" "garbage" "(:id)" "(:id . 1)" "\"x" ")" "(a b)" "#1=(:a #1#)"))
    (should-error (contexture--decode line) :type 'contexture-unreadable)))

;;;; Only plain data

(defun contexture-wire-tests--plain-p (value)
  "Return non-nil if VALUE has nothing but plain data, without properties."
  (cond ((stringp value)
         (not (or (text-properties-at 0 value) (next-property-change 0 value))))
        ((consp value) (and (contexture-wire-tests--plain-p (car value))
                            (contexture-wire-tests--plain-p (cdr value))))
        ((vectorp value) (cl-every #'contexture-wire-tests--plain-p value))
        (t (or (symbolp value) (numberp value)))))

(defun contexture-wire-tests--decoded (line)
  "Return what LINE means, or `refused'."
  (condition-case nil (contexture--decode line)
    (contexture-unreadable 'refused)))

(ert-deftest contexture-wire-drops-text-properties ()
  (should (equal-including-properties
           (contexture--decode
            "(:a #(\"x\" 0 1 (display (when (error \"ran\") . \"y\"))) :b [(#(\"z\" 0 1 (a b)) . 1)])")
           '(:a "x" :b [("z" . 1)]))))

(ert-deftest contexture-wire-takes-no-objects ()
  (dolist (text '("#[0 \"\"]" "#s(hash-table)" "#1=(a . #1#)" "#'car" "#&5\"\\37\"" "##"
                  "#$" "#@4 foo" "?\" #[0 \"\"] \"\"" "'?\" #[0 \"\"] \"\"" ".?\" #[0 \"\"] \"\""
                  "\"\\^\"\"  #[0 \"\"] \"" "\"\\C-\"\"  #[0 \"\"] \"" "\u00a0?\" #[0 \"\"] \"\""
                  "\"\\N{\"}\" #[0 \"\"] \""))
    (dolist (line (list (format "(:a %s)" text) (format "(:a %s :b 1)" text)
                        (format "(:a (%s))" text)))
      (should (equal (list line (contexture-wire-tests--decoded line))
                     (list line 'refused)))))
  ;; These only look like objects.
  (dolist (message '((:a "#[0]" :b "?\" #s(x)") (:a "\\^\\C-\"" :b x?) (:a ";" :b [a-b? "#"])
                     (:a "#\n{{ x }}\n^\\n{" :b "a\tS-\rM-")))
    (should (equal (contexture--decode (string-trim (car (contexture--encode message))))
                   message))))

(ert-deftest contexture-wire-survives-quotes-of-quotes ()
  (dolist (quote '("'" "`" "," ",@" "' " "'`" "'\t,@"))
    (let ((many (mapconcat #'identity (make-list 20000 quote) "")))
      (should-not (contexture--data-kind (concat "(:a " many "x)")))
      ;; In a string they are text.
      (should (eq 'plain (contexture--data-kind (concat "(:a \"" many "\")"))))))
  (should (eq 'plain (contexture--data-kind (concat "(:a 'b :c '(d)" (make-string 2000 ?\s) ")")))))

(ert-deftest contexture-wire-survives-what-is-too-deep ()
  (should (eq 'refused (contexture-wire-tests--decoded
                        (concat "(:a " (make-string 5000000 ?\()))))
  (should (eq 'refused (contexture-wire-tests--decoded
                        (concat "(:a " (make-string 5000 ?\[) (make-string 5000 ?\]) ")"))))
  (let ((deep (concat "(:a " (make-string 600 ?\() (make-string 600 ?\)) ")")))
    (should (consp (contexture-wire-tests--decoded deep))))
  ;; What nothing can be done with is refused as well, and is no other error.
  (dolist (depth '(10 200 400 600 800 990))
    (pcase-dolist (`(,open . ,close) '(("(" . ")") ("[" . "]") ("(:metadata (:filename " . "))")))
      (dolist (inner '("#(\"x\" 0 1 (face bold))" ":filename 2" "lambda"))
        (let ((got (contexture-wire-tests--decoded
                    (concat "(:a " (apply #'concat (make-list depth open)) inner
                            (apply #'concat (make-list depth close)) ")"))))
          (should (or (eq got 'refused) (consp got))))))))

(defun contexture-wire-tests--functions-in (data)
  "Return what Emacs would call in DATA: lists, and the heads of such lists."
  (let ((found (and (or (memq data '(lambda closure)) (and (consp data) (functionp data)))
                    (list data))))
    (while (consp data)
      (setq found (append found (contexture-wire-tests--functions-in (pop data)))))
    (cond ((vectorp data)
           (append found (cl-mapcan #'contexture-wire-tests--functions-in (append data nil))))
          (data (append found (and (memq data '(lambda closure)) (list data))))
          (t found))))

(ert-deftest contexture-wire-reads-no-functions ()
  "Emacs takes a list that begins with a certain symbol for a function."
  (let ((wrapped '("(:a %s)" "(:a (%s (x) (error \"ran\")))" "(:a ((:id %s) (:id (x)) (:id (y))))"
                   "(:a [%s 1])" "(:a (x . %s))" "(:a ((%s)))" "(:a '%s)" "(:a ,%s)"
                   "(:a [(%s . %s)] :b (1 [[%s]]))" "(:a (b (c (%s) . [%s])))")))
    (dolist (symbol '("lambda" "closure"))
      (dolist (spelled (list symbol (concat "\\" symbol)
                             (concat (substring symbol 0 3) "\\" (substring symbol 3))
                             (mapconcat (lambda (it) (string ?\\ it)) symbol "")))
        (should (eq (intern symbol) (read spelled)))
        (dolist (line wrapped)
          (let* ((line (string-replace "%s" spelled line))
                 (got (contexture-wire-tests--decoded line)))
            (should (equal (list line (consp got) (contexture-wire-tests--functions-in got))
                           (list line t nil)))
            (should (equal (format "%S" got)
                           (format "%S" (read (string-replace spelled (format "%S" symbol) line)))))))))
    ;; Other symbols, and texts, stay as they are.
    (dolist (message '((:a "(lambda (x) \\lambda)" :b lambda-list :c (:lambda 1) :closure Lambda)
                       (:a (lisp-mode "closure" \,x l\\ambda))))
      (should (equal (contexture--decode (string-trim (car (contexture--encode message))))
                     message)))))

(defun contexture-wire-tests--object (depth)
  "Return a random object of Emacs, nested at most DEPTH deep."
  (let ((inner (lambda () (contexture-wire-tests--object (1- depth)))))
    (pcase (random (if (> depth 0) 18 9))
      (0 (random 1000))
      (1 (* 1.5 (random 10)))
      (2 (intern (apply #'string (cl-loop repeat (1+ (random 5))
                                          collect (aref "ab?#\\\"'`,.;:-[](){}^ C" (random 21))))))
      ((or 3 4) (apply #'string (cl-loop repeat (random 8)
                                         collect (aref "ab?#\\\"';([])^C-N{}\n\u00e9\u202e" (random 20)))))
      ((or 5 6) (propertize (symbol-name (gensym "#\"?")) 'display
                            `(when (error "ran") . ,(if (> depth 0) (funcall inner) "y"))))
      (7 nil)
      (8 (bool-vector t nil t))
      (9 (make-marker))
      (10 (byte-compile '(lambda (x) (list x "#[?\""))))
      (11 (let ((table (make-hash-table))) (puthash 1 (funcall inner) table) table))
      (12 (record 'contexture-thing (funcall inner)))
      (13 (let ((circle (list 1 (funcall inner)))) (setcdr (cdr circle) circle) circle))
      (14 (vector (funcall inner) (funcall inner)))
      (15 (cons (funcall inner) (funcall inner)))
      (16 (list 'quote (funcall inner)))
      (_ (list (funcall inner) (funcall inner) (funcall inner))))))

(ert-deftest contexture-wire-reads-plain-data-from-whatever-emacs-prints ()
  (random "contexture")
  (let ((counts (list 0 0)))
    (dotimes (_ 4000)
      (let* ((print-circle (zerop (random 4)))
             (print-quoted (zerop (random 2)))
             (print-escape-newlines t)
             (print-escape-control-characters (zerop (random 2)))
             (print-integers-as-characters (zerop (random 2)))
             (object (contexture-wire-tests--object (random 5)))
             (line (replace-regexp-in-string
                    "\n" " " (condition-case nil (prin1-to-string (list :a object))
                               (error "(:a circle)"))))
             ;; And printed texts that are damaged.
             (line (if (zerop (random 3)) line
                     (let ((at (random (length line))))
                       (concat (substring line 0 at)
                               (string (aref "\"?#\\^'([;" (random 9)))
                               (substring line (min (length line) (+ at (random 3))))))))
             (got (contexture-wire-tests--decoded line)))
        (cl-incf (nth (if (eq got 'refused) 0 1) counts))
        (should (equal (list line (contexture-wire-tests--plain-p got)) (list line t)))))
    ;; It takes some, and refuses some.
    (should (cl-every (lambda (count) (> count 200)) counts))))

(ert-deftest contexture-wire-leaves-a-server-with-an-endless-line ()
  (let ((contexture--longest-line 1000)
        (connection (contexture--new-connection '("true"))))
    (unwind-protect
        (progn
          (oset connection state 'ready)
          (dotimes (_ 5) (contexture--collect connection (make-string 300 ?x)))
          (should (eq (oref connection state) 'down))
          (should (string-match-p "line of more than 1000" (oref connection reason)))
          (should (<= (buffer-size (oref connection inbox)) 300)))
      (jsonrpc-shutdown connection))))

(ert-deftest contexture-wire-leaves-the-message-alone ()
  (let* ((text (propertize "x" 'face 'bold))
         (message (list :a text)))
    (contexture--encode message)
    (should (equal-including-properties (plist-get message :a)
                                        (propertize "x" 'face 'bold)))))

(ert-deftest contexture-wire-an-older-server-tells-what-it-can ()
  (let (subscribed (inhibit-message t))
    (contexture-ert-with-handler
        (lambda (method params)
          (when (eq method 'subscribe)
            (push (plist-get params :topics) subscribed)
            (if (equal (plist-get params :topics) '("context-changed"))
                '(result nil)
              '(error -32602 "topics[1] must be one of context-changed, got stats"))))
      (should (eq (contexture-request 'ping) :pong))
      (contexture-test-message "the server is older than this package"
        (contexture-watch #'ignore '(stats))
        (llm-ert-wait-for (cdr subscribed)))
      (should (equal (car subscribed) '("context-changed"))))))

(ert-deftest contexture-wire-reads-no-number-of-many-digits ()
  (let ((digits (make-string 15000 ?9)))
    (should (equal (contexture--decode (format "(:id 1 :result (:a %s :b [-%s (%s . 1)] :c \"%s\"))"
                                               digits digits digits digits))
                   `(:id 1 :result (:a ,most-positive-fixnum
                                       :b [,most-negative-fixnum (,most-positive-fixnum . 1)]
                                       :c ,digits)))))
  (should (equal (contexture--decode "(:id 1 :result 1234567890123456789)")
                 '(:id 1 :result 1234567890123456789))))

(provide 'contexture-wire-tests)
;;; contexture-wire-tests.el ends here
