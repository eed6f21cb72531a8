;;; contexture-batch-tests.el --- Tests of batches and pages  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Many calls in one message, and long lists in many answers.

;;; Code:

(require 'contexture-test-helper)

(defun contexture-batch-tests--add (content)
  "Return a call that adds CONTENT to the manager \"m\"."
  `(add-item :manager "m" :content ,content))

(defun contexture-batch-tests--contents ()
  "Return the texts of the items of the manager \"m\", the oldest first."
  (mapcar (lambda (item) (plist-get item :content)) (contexture-test-items "m")))

(defun contexture-batch-tests--asked (method)
  "Return how many calls of METHOD, a string, were sent in this test."
  (cl-count-if (lambda (line)
                 (and (eq (car line) 'sent)
                      (equal method (plist-get (contexture-ert--decode (cadr line)) :method))))
               llm-ert--said))

;;;; Batches

(ert-deftest contexture-batch-returns-outcomes-in-order ()
  (contexture-test-with-server
    (let ((outcomes (contexture-request-batch
                     (mapcar #'contexture-batch-tests--add '("one" "two" "three")))))
      (should (equal (mapcar (lambda (it) (plist-get (plist-get it :result) :content)) outcomes)
                     '("one" "two" "three")))
      (should (= (contexture-batch-tests--asked "batch") 1))
      (should (equal (contexture-batch-tests--contents) '("one" "two" "three"))))))

(ert-deftest contexture-batch-has-errors-beside-results ()
  (contexture-test-with-server
    (let ((outcomes (contexture-request-batch
                     `(,(contexture-batch-tests--add "one")
                       (remove-items :manager "m" :id "ctx-99")
                       ,(contexture-batch-tests--add "two")))))
      (should (equal (mapcar #'car outcomes) '(:result :error :result)))
      (should (eq (plist-get (plist-get (plist-get (nth 1 outcomes) :error) :data) :kind)
                  :no-such-item))
      (should (equal (contexture-batch-tests--contents) '("one" "two"))))))

(ert-deftest contexture-batch-that-is-atomic-signals-and-keeps-nothing ()
  (contexture-test-with-server
    (let ((problem (should-error
                    (contexture-request-batch
                     `(,(contexture-batch-tests--add "one")
                       (remove-items :manager "m" :id "ctx-99"))
                     t)
                    :type 'contexture-error)))
      (should (string-match-p "call 2 of the batch, remove-items: no item ctx-99" (cadr problem)))
      (should-not (contexture-batch-tests--contents))
      (should (= 2 (length (contexture-request-batch
                            (mapcar #'contexture-batch-tests--add '("one" "two")) t))))
      (should (equal (contexture-batch-tests--contents) '("one" "two"))))))

(ert-deftest contexture-batch-async-hands-on-outcomes ()
  (contexture-test-with-server
    (let (outcomes)
      (contexture-request-batch-async
       `(,(contexture-batch-tests--add "one") (no-such-method))
       :success (lambda (it) (setq outcomes it)))
      (should-not outcomes)
      (llm-ert-wait-for outcomes)
      (should (equal (plist-get (plist-get (car outcomes) :result) :content) "one"))
      (should (= (plist-get (plist-get (cadr outcomes) :error) :code) -32601)))))

(ert-deftest contexture-batch-async-that-is-atomic-hands-on-its-error ()
  (contexture-test-with-server
    (let (problem)
      (contexture-request-batch-async
       `(,(contexture-batch-tests--add "one") (remove-items :manager "m" :id "ctx-99"))
       :atomic t
       :success (lambda (_) (error "Nothing should have succeeded"))
       :error (lambda (it) (setq problem it)))
      (llm-ert-wait-for problem)
      (should (eq (plist-get (plist-get problem :data) :kind) :no-such-item))
      (should (= (plist-get (plist-get problem :data) :index) 1))
      (should-not (contexture-batch-tests--contents)))))

(ert-deftest contexture-batch-is-carried-out-once-when-the-server-is-killed ()
  (contexture-test-with-state
    (contexture-request 'ping)
    (let (outcomes)
      (contexture-request-batch-async
       (mapcar #'contexture-batch-tests--add '("one" "two"))
       :success (lambda (it) (setq outcomes it)))
      (contexture-ert-kill-server t)
      (llm-ert-wait-for outcomes)
      (should (equal (contexture-batch-tests--contents) '("one" "two"))))))

;;;; Pages

(defun contexture-batch-tests--fill (count bytes)
  "Add COUNT items of about so many BYTES to the manager \"m\"."
  (contexture-request-batch
   (cl-loop for n below count
            collect (contexture-batch-tests--add
                     (format "%d %s" n (make-string bytes ?x))))))

(defun contexture-batch-tests--pages (method &optional params)
  "Return the list that METHOD with PARAMS has, fetched in pages."
  (let ((list 'none))
    (contexture-request-pages method params :success (lambda (it) (setq list it)))
    (llm-ert-wait-for (listp list))
    list))

(ert-deftest contexture-pages-are-followed-to-the-end ()
  (contexture-test-with-server
    (contexture-batch-tests--fill 40 5000)
    (should (equal (contexture-batch-tests--pages 'list-items '(:manager "m"))
                   (contexture-test-items "m")))
    (should (>= (contexture-batch-tests--asked "list-items") 4))))

(ert-deftest contexture-pages-of-what-begins-with-the-first-keep-its-order ()
  (contexture-test-with-server
    (contexture-request-batch
     (cl-loop for n below 400
              collect `(remember :content ,(format "%d %s" n (make-string 300 ?x))
                                 :scope :everywhere)))
    (should (equal (contexture-batch-tests--pages 'list-memories '(:limit 400))
                   (contexture-request 'list-memories '(:limit 400))))
    (should (> (contexture-batch-tests--asked "list-memories") 2))))

(ert-deftest contexture-pages-have-long-entries-whole ()
  (contexture-test-with-server
    (contexture-batch-tests--fill 2 100000)
    (contexture-batch-tests--fill 2 10)
    (should (equal (contexture-batch-tests--pages 'list-items '(:manager "m"))
                   (contexture-test-items "m")))))

(ert-deftest contexture-pages-of-nothing-are-empty ()
  (contexture-test-with-server
    (should-not (contexture-batch-tests--pages 'list-items '(:manager "m")))))

(ert-deftest contexture-pages-hand-on-a-refusal ()
  (contexture-test-with-server
    (let (problem)
      (contexture-request-pages 'get-messages '(:session "none")
                                :error (lambda (it) (setq problem it)))
      (llm-ert-wait-for problem)
      (should (eq (plist-get (plist-get problem :data) :kind) :no-such-session)))))

(defun contexture-batch-tests--outdating (request method params &rest keys)
  "Call REQUEST with METHOD, PARAMS and KEYS once their cursor is lost.
For that, eight other lists are begun first."
  (if (not (plist-get params :cursor))
      (apply request method params keys)
    (let ((left 8))
      (dotimes (_ left)
        (funcall request 'list-items '(:manager "m" :max-bytes 1024)
                 :success (lambda (_)
                            (when (zerop (cl-decf left))
                              (apply request method params keys))))))))

(ert-deftest contexture-pages-say-that-their-cursor-is-lost ()
  (contexture-test-with-server
    (contexture-batch-tests--fill 40 5000)
    (let ((request (symbol-function 'contexture-request-async)) list problem)
      (cl-letf (((symbol-function 'contexture-request-async)
                 (apply-partially #'contexture-batch-tests--outdating request)))
        (contexture-request-pages 'list-items '(:manager "m")
                                  :success (lambda (it) (setq list it))
                                  :error (lambda (it) (setq problem it)))
        (llm-ert-wait-for (or list problem)))
      (should-not list)
      (should (eq (plist-get (plist-get problem :data) :kind) :no-such-cursor)))))

(provide 'contexture-batch-tests)
;;; contexture-batch-tests.el ends here
