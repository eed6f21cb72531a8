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

(ert-deftest contexture-wire-drops-text-properties ()
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
        (contexture-ert-wait-for (cdr subscribed)))
      (should (equal (car subscribed) '("context-changed"))))))

(provide 'contexture-wire-tests)
;;; contexture-wire-tests.el ends here
