;;; todo-context-tests.el --- Tests of todo-context  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A sample of a suite that is written with contexture-ert.  The tests
;; that replay, or answer by a function, need no server; the others start
;; one each.

;;; Code:

(require 'contexture-ert)
(require 'todo-context)

(defconst todo-context-tests--files
  '(("src/a.el" . "(one)\n(two) ; TODO: rename\n;; FIXME three\n")
    ("src/done.el" . "(four) ; TODOS is another word\n"))
  "A project with two things to do.")

(defmacro todo-context-tests--in (file &rest body)
  "Run BODY in a buffer that visits FILE of a small project."
  (declare (indent 1) (debug t))
  `(llm-ert-with-files todo-context-tests--files
     (with-current-buffer (find-file-noselect ,file)
       ,@body)))

;;;; Without any server

(ert-deftest todo-context-finds-lines ()
  (todo-context-tests--in "src/a.el"
    (should (equal (mapcar (lambda (note) (plist-get note :content))
                           (todo-context--notes))
                   '("(two) ; TODO: rename" ";; FIXME three")))))

(ert-deftest todo-context-says-that-there-is-nothing ()
  (todo-context-tests--in "src/done.el"
    (should-error (todo-context-add) :type 'user-error)))

;;;; With a recorded exchange

(ert-deftest todo-context-adds-and-inserts ()
  (todo-context-tests--in "src/a.el"
    (contexture-ert-with-replay (ert-resource-file "add-and-insert.sexp")
      (todo-context-add)
      (with-temp-buffer
        (todo-context-insert)
        (should (string-search "(two) ; TODO: rename" (buffer-string)))))))

;;;; With a server

(ert-deftest todo-context-sends-the-place-of-each-line ()
  (todo-context-tests--in "src/a.el"
    (contexture-ert-with-server
      (todo-context-add)
      (llm-ert-should-called
       'add-item `(:manager "todos" :content ";; FIXME three"
                      :metadata (:filename ,(buffer-file-name) :start-line 3)))
      (should (= (length (llm-ert-calls 'add-item)) 2)))))

(ert-deftest todo-context-says-when-all-is-added ()
  (todo-context-tests--in "src/a.el"
    (contexture-ert-with-server
      (ert-with-message-capture said
        (todo-context-add)
        (llm-ert-wait-for (string-search "Added 2 TODOs" said))))))

(ert-deftest todo-context-the-first-item-is-always-the-same ()
  (todo-context-tests--in "src/a.el"
    (contexture-ert-with-server
      (todo-context-add)
      (let ((item (car (contexture-request 'list-items '(:manager "todos")))))
        (should (equal (plist-get item :id) "ctx-1"))
        (should (= (plist-get item :timestamp) contexture-ert-time))))))

(ert-deftest todo-context-keeps-what-was-added ()
  (todo-context-tests--in "src/a.el"
    (dolist (count '(2 4))
      (contexture-ert-with-server
        :state (concat llm-ert-directory "state")
        (todo-context-add)
        (should (= (length (contexture-request 'list-items '(:manager "todos")))
                   count))))))

;;;; With a model

(defmacro todo-context-tests--asking (answers &rest body)
  "Run BODY in a buffer with a server and a model that says ANSWERS.
Return what the model was shown."
  (declare (indent 1) (debug t))
  `(llm-ert-with-model ,answers
     (contexture-ert-with-server
       (with-temp-buffer
         ,@body))))

(defun todo-context-tests--ask ()
  "Ask the model, and wait until it has answered."
  (todo-context-ask "What first?")
  (llm-ert-wait-for (null todo-context--answer)))

(ert-deftest todo-context-asks-about-what-there-is-to-do ()
  (let ((shown (todo-context-tests--asking '("Rename it.")
                 (contexture-request
                  'add-item (list :manager "todos" :content "; TODO: rename"))
                 (todo-context-tests--ask)
                 (should (equal (buffer-string) "Rename it.")))))
    (should (= (length shown) 1))
    (should (string-search "; TODO: rename" (plist-get (car shown) :system)))
    (should (string-search "What first?" (plist-get (car shown) :prompt)))))

(ert-deftest todo-context-inserts-the-answer-as-it-comes ()
  (todo-context-tests--asking '(("Rename " (step half) "it."))
    (todo-context-ask "What first?")
    (llm-ert-await-step 'half)
    (llm-ert-wait-for (equal (buffer-string) "Rename "))
    (llm-ert-go-on 'half)
    (llm-ert-wait-for (equal (buffer-string) "Rename it."))
    (llm-ert-wait-for (null todo-context--answer))))

(ert-deftest todo-context-asks-whether-the-model-may-look ()
  (dolist (allowed '(t nil))
    (let* (asked
           (shown (todo-context-tests--asking
                      '((call "read" (:id "ctx-1")) "Rename it.")
                    (contexture-request
                     'add-item (list :manager "todos" :content "; TODO: rename"))
                    (cl-letf (((symbol-function 'y-or-n-p)
                               (lambda (text) (push text asked) allowed)))
                      (todo-context-tests--ask)))))
      (should (equal asked (list "Let the model read ctx-1? ")))
      (should (= (length shown) 2))
      (should (eq (plist-get (car (last (plist-get (cadr shown) :messages))) :role)
                  'tool)))))

(ert-deftest todo-context-says-what-went-wrong ()
  (todo-context-tests--asking '((error authentication "who are you?"))
    (ert-with-message-capture messages
      (todo-context-tests--ask)
      (should (string-search "who are you?" messages)))
    (should (equal (buffer-string) ""))))

(ert-deftest todo-context-stops-the-model ()
  (todo-context-tests--asking '(("Rename " (step half) "it."))
    (todo-context-ask "What first?")
    (llm-ert-await-step 'half)
    (llm-ert-wait-for (equal (buffer-string) "Rename "))
    (todo-context-stop)
    (llm-ert-wait-for (null todo-context--answer))
    (should (equal (buffer-string) "Rename "))))

;;;; With faults

(ert-deftest todo-context-adds-though-the-server-dies ()
  (todo-context-tests--in "src/a.el"
    (contexture-ert-with-server
      :state t
      (contexture-ert-kill-server)
      (todo-context-add)
      (should (= (length (contexture-request 'list-items '(:manager "todos"))) 2)))))

(ert-deftest todo-context-shows-errors-of-the-server ()
  (contexture-ert-with-handler
      (lambda (method _)
        (pcase method
          ('open-session '(result (:session "todos")))
          ('chat '(error 1 "no model is set up"))))
    (with-temp-buffer
      (ert-with-message-capture messages
        (todo-context-tests--ask)
        (should (string-search "no model is set up" messages))))))

;;;; Nothing is left

(ert-deftest todo-context-leaves-nothing ()
  (should-not
   (llm-ert-leftovers
     (todo-context-tests--asking '("Rename it.")
       (todo-context-tests--ask)
       (should-not (memq #'todo-context--hear contexture-notification-functions))))))

(provide 'todo-context-tests)
;;; todo-context-tests.el ends here
