;;; contexture-live-tests.el --- Tests of items that follow what is typed  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What a model would get is what is in the buffers, whatever was done to
;; them; where that is not certain, it is said.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-marks)
(require 'contexture-list)
(require 'contexture-gptel)
(require 'contexture-menu)

(defvar contexture-live-tests--lines
  '("first" "second" "third" "fourth" "fifth" "sixth" "seventh" "eighth")
  "Lines of the file in these tests.")

(defmacro contexture-live-tests--with-file (&rest body)
  "Run BODY, with a server, in a buffer that visits eight lines, `file'."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (contexture-live-tests--visiting ,@body)))

(defmacro contexture-live-tests--visiting (&rest body)
  "Run BODY in a buffer that visits eight lines, `file'."
  (declare (indent 0) (debug t))
  `(let ((file (apply #'contexture-test-file "a.txt" contexture-live-tests--lines)))
     (contexture-test-visiting file
       (buffer-enable-undo)
       ,@body)))

(defun contexture-live-tests--add (start end)
  "Add the lines from START to END of this buffer; wait for the answer."
  (save-excursion
    (contexture-add-region (contexture--line-position start)
                           (contexture--line-position (1+ end))))
  (contexture-test-settle))

(defun contexture-live-tests--line (n)
  "Go to the beginning of line N."
  (goto-char (point-min))
  (forward-line (1- n)))

(defun contexture-live-tests--item ()
  "Return the one item of the context, as the server shows it now."
  (contexture-test-only-item "a.txt"))

(defun contexture-live-tests--check (text &optional lines)
  "Check that the one item has TEXT now, is fresh, and is on LINES, a list."
  (let ((item (contexture-live-tests--item)))
    (should (equal (plist-get item :content) text))
    (should (eq (plist-get item :state) :fresh))
    (when lines
      (should (equal (contexture-test-metadata item :start-line :end-line) lines)))))

(defun contexture-live-tests--undo ()
  "Undo the last change of this buffer, as a user does."
  (undo-boundary)
  (let ((last-command 'ignore) (this-command 'undo)) (undo)))

(defun contexture-live-tests--updates ()
  "Return the number of calls that told the server of buffers."
  (length (llm-ert-calls 'update-items)))

;;;; Typing

(ert-deftest contexture-live-items-have-what-was-typed ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 4)
    (contexture-live-tests--line 4)
    (insert "typed ")
    (goto-char (point-min))
    (insert "above\n")
    (contexture-live-tests--check "third\ntyped fourth\n" '(4 5))
    (let ((item (contexture-live-tests--item)))
      (should (equal (contexture-test-metadata item :unsaved :modified) '(t t))))
    (should (string-search "typed fourth" (plist-get (contexture--rendered "a.txt") :text)))
    (save-buffer)
    (contexture-live-tests--check "third\ntyped fourth\n" '(4 5))
    (should (equal (contexture-test-metadata (contexture-live-tests--item) :unsaved)
                   '(nil)))))

(ert-deftest contexture-live-text-is-given-to-those-who-ask-for-it ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 4)
    (llm-ert-wait-for contexture--live-watching)
    (contexture-live-tests--line 4)
    (insert "typed ")
    (let ((text (buffer-string))
          (read (list :path file :root (file-name-directory file) :ask-editors t)))
      ;; This Emacs does not wait for itself.
      (should-not (eq (plist-get (contexture-request 'read-file read) :unsaved) t))
      (llm-ert-wait-for (llm-ert-calls 'give-result))
      (should (equal (plist-get (car (llm-ert-calls 'give-result)) :content) text))
      (should (= (contexture-live-tests--updates) 1))
      (save-buffer)
      (contexture-request 'read-file read)
      (contexture-request 'open-layers '(:ask-editors t))
      (llm-ert-wait-for (= 3 (length (llm-ert-calls 'give-result))))
      (dolist (given (cdr (llm-ert-calls 'give-result)))
        (should-not (plist-get given :content))))))

(ert-deftest contexture-live-items-follow-with-and-without-the-mode ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 4)
    (should (= (length (contexture-test-item-ids)) 1))
    (contexture-mode)
    (contexture-test-settle)
    (llm-ert-wait-for (get-char-property (contexture--line-position 3) 'help-echo))
    (contexture-mode -1)
    (should-not (get-char-property (contexture--line-position 3) 'help-echo))
    (contexture-live-tests--line 3)
    (insert "x")
    (contexture-live-tests--check "xthird\nfourth\n" '(3 4))))

(ert-deftest contexture-live-items-are-told-in-one-call-when-emacs-is-idle ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 1 1)
    (contexture-live-tests--add 4 5)
    (contexture-test-settle)
    (contexture-live-tests--line 4)
    (insert "x")
    (contexture-live-tests--line 1)
    (insert "y")
    (should (= (contexture-live-tests--updates) 0))
    (should (eq (timer--function contexture-live--timer) #'contexture-live--look))
    (contexture-test-at-once (timer-event-handler contexture-live--timer))
    (contexture-test-settle)
    (should (= (contexture-live-tests--updates) 1))
    (timer-event-handler contexture-live--timer)
    (should (equal (mapcar (lambda (item) (plist-get item :content))
                           (contexture-test-items "a.txt"))
                   '("yfirst\n" "xfourth\nfifth\n")))
    (should (= (contexture-live-tests--updates) 1))))

(ert-deftest contexture-live-definitions-grow-and-tell-their-kinds ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "a.el" "(defun f ()" "  1)" "" "(g)")
      (goto-char 3)
      (contexture-test-message "^Added" (contexture-add-defun))
      (contexture-live-tests--line 2)
      (insert "  (message \"more\")\n")
      (let ((item (contexture-test-only-item)))
        (should (equal (plist-get item :content)
                       "(defun f ()\n  (message \"more\")\n  1)\n"))
        (should (equal (contexture-test-metadata item :symbol :symbol-kind :end-line)
                       '("f" :function 3))))
      (contexture-test-message "it was already there" (contexture-add-defun))
      (contexture-test-only-item))))

(ert-deftest contexture-live-text-at-the-end-of-a-line-belongs-to-it ()
  (contexture-live-tests--with-file
    (contexture-add-region 1 6)
    (contexture-test-settle)
    (goto-char 6)
    (insert " more\nnot this")
    (contexture-live-tests--check "first more" '(1 1))))

(ert-deftest contexture-live-buffers-and-files-are-sent-as-they-are ()
  (contexture-live-tests--with-file
    (contexture-test-message "^Added" (contexture-add-buffer))
    (goto-char (point-max))
    (insert "ninth\n")
    (contexture-live-tests--check (buffer-string))
    (set-buffer-modified-p nil)
    (contexture-request 'remove-items '(:all t :manager "a.txt"))
    (revert-buffer t t)
    (contexture-test-message "^Added" (contexture-add-file file))
    (llm-ert-wait-for (contexture-test-item-ids))
    (insert "zeroth\n")
    (contexture-live-tests--check (buffer-string))))

(ert-deftest contexture-live-parts-of-lines-keep-their-ends ()
  (contexture-live-tests--with-file
    (contexture-add-region 3 9)
    (contexture-test-settle)
    (goto-char 1)
    (insert "x")
    (contexture-live-tests--check "rst\nse")
    (goto-char 5)
    (insert "-")
    (contexture-live-tests--check "r-st\nse")))

;;;; Deleting

(ert-deftest contexture-live-deleted-text-is-stale-until-it-is-back ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 4)
    (undo-boundary)
    (contexture-live-tests--line 3)
    (delete-region (point) (contexture--line-position 5))
    (let ((item (contexture-live-tests--item)))
      (should (eq (plist-get item :state) :stale))
      (should (equal (plist-get item :content) "third\nfourth\n"))
      (should (equal (contexture-test-metadata item :stale)
                     '("deleted in the buffer"))))
    (should (string-match-p "as of 20.*deleted in the buffer"
                            (plist-get (contexture--rendered "a.txt") :text)))
    (contexture-live-tests--undo)
    (contexture-live-tests--check "third\nfourth\n" '(3 4))
    (contexture-live-tests--line 3)
    (insert "x")
    (contexture-live-tests--check "xthird\nfourth\n" '(3 4))))

(ert-deftest contexture-live-text-that-was-moved-is-found ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 4)
    (contexture-live-tests--line 3)
    (let ((text (delete-and-extract-region (point) (contexture--line-position 5))))
      (goto-char (point-max))
      (insert text)
      (contexture-live-tests--check "third\nfourth\n" '(7 8)))))

(ert-deftest contexture-live-copies-of-deleted-text-are-not-taken-for-it ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 3)
    (contexture-live-tests--line 3)
    (delete-region (point) (contexture--line-position 4))
    (goto-char (point-max))
    (insert "third\nthird\n")
    (should (eq (plist-get (contexture-live-tests--item) :state) :stale))))

(ert-deftest contexture-live-the-end-of-a-line-is-not-a-deleted-line ()
  "Where a line was deleted, no other line's end brings it back."
  (contexture-live-tests--with-file
    (pcase-dolist (`(,line . ,typed)
                   '(("\n" . "# note\n") ("x\n" . "max\n") ("  y\n" . "if  y\n") ("end" . "append")
                     ("\n\n" . "a\n\n")))
      (goto-char (point-max))
      (insert "\n" line)
      (let ((place (- (point-max) (length line))))
        (contexture-add-region place (point-max))
        (contexture-test-settle)
        (delete-region place (point-max))
        (goto-char (point-max))
        (insert typed)
        (let ((item (car (last (contexture-test-items)))))
          (should (equal (list line (plist-get item :state) (plist-get item :content))
                         (list line :stale line))))))))

(ert-deftest contexture-live-the-last-copy-is-not-the-deleted-text ()
  (contexture-live-tests--with-file
    (goto-char (point-max))
    (insert "third\n")
    (contexture-live-tests--add 9 9)
    (contexture-live-tests--line 9)
    (delete-region (point) (point-max))
    (let ((item (contexture-live-tests--item)))
      (should (eq (plist-get item :state) :stale))
      (should (equal (contexture-test-metadata item :stale) '("deleted in the buffer"))))
    ;; Back in its place, it is the text again.
    (goto-char (point-max))
    (insert "third\n")
    (contexture-live-tests--check "third\n" '(9 9))
    ;; The same line before it is not.
    (goto-char (point-max))
    (insert "third\n")
    (contexture-add-region (contexture--line-position 10) (point-max))
    (contexture-test-settle)
    (delete-region (contexture--line-position 10) (point-max))
    (should (eq (plist-get (car (last (contexture-test-items "a.txt"))) :state) :stale))))

(ert-deftest contexture-live-text-that-was-moved-before-another-has-its-lines ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 3)
    (contexture-live-tests--add 6 6)
    (contexture-live-tests--line 6)
    (let ((text (delete-and-extract-region (point) (contexture--line-position 7))))
      (goto-char (point-min))
      (insert text)
      (should (equal (mapcar (lambda (item)
                               (contexture-test-metadata item :start-line :end-line))
                             (contexture-test-items "a.txt"))
                     '((4 4) (1 1)))))))

;;;; Buffers

(ert-deftest contexture-live-edits-of-a-killed-buffer-are-gone ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 4)
    (contexture-live-tests--line 3)
    (insert "never saved ")
    (contexture-live-tests--check "never saved third\nfourth\n")
    (restore-buffer-modified-p t)
    (let ((kill-buffer-query-functions nil))
      (cl-letf (((symbol-function 'yes-or-no-p) #'always)
                ((symbol-function 'read-multiple-choice) (lambda (&rest _) '(?n))))
        (kill-buffer)))
    (with-temp-buffer
      (contexture-live-tests--check "third\nfourth\n" '(3 4))
      (should-not contexture-live--buffers)
      (should-not contexture-live--timer))))

(ert-deftest contexture-live-items-are-found-when-their-file-is-opened ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 4)
    (kill-buffer)
    (with-current-buffer (find-file-noselect file)
      (llm-ert-wait-for (contexture-test-item-ids))
      (contexture-live-tests--line 4)
      (insert "new ")
      (contexture-live-tests--check "third\nnew fourth\n" '(3 4)))))

(ert-deftest contexture-live-items-are-found-after-a-new-start ()
  (contexture-test-with-state
    (contexture-live-tests--visiting
      (contexture-live-tests--add 3 4)
      (contexture-disconnect)
      (should-not (contexture-test-item-ids))
      (should-not (memq #'contexture-live--opened (default-value 'find-file-hook)))
      (contexture-request 'ping)
      (llm-ert-wait-for (contexture-test-item-ids))
      (contexture-live-tests--line 3)
      (insert "new ")
      (contexture-live-tests--check "new third\nfourth\n"))))

(ert-deftest contexture-live-unsaved-text-survives-the-death-of-the-server ()
  (contexture-test-with-state
    (contexture-live-tests--visiting
      (contexture-live-tests--add 3 4)
      (contexture-live-tests--line 3)
      (insert "unsaved ")
      (contexture-live-tests--check "unsaved third\nfourth\n")
      (contexture-ert-kill-server t)
      (insert "more ")
      (contexture-live-tests--check "unsaved more third\nfourth\n"))))

(ert-deftest contexture-live-reverted-buffers-have-what-is-in-their-files ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 4)
    (contexture-live-tests--line 3)
    (insert "never saved ")
    (contexture-live-tests--check "never saved third\nfourth\n")
    (revert-buffer t t)
    (contexture-live-tests--check "third\nfourth\n" '(3 4))
    (contexture-test-file "a.txt" "new" "first" "second" "third" "fourth" "fifth")
    (revert-buffer t t)
    (contexture-live-tests--check "third\nfourth\n" '(4 5))
    (contexture-test-settle)
    (llm-ert-wait-for (contexture-test-item-ids))
    (contexture-live-tests--line 4)
    (insert "x")
    (contexture-live-tests--check "xthird\nfourth\n" '(4 5))))

(ert-deftest contexture-live-reverted-items-keep-to-their-lines ()
  (contexture-live-tests--with-file
    (let* ((lines (cl-loop for n from 1 to 60 collect (md5 (number-to-string n))))
           (changed (lambda (&rest numbers)
                      (cl-loop for line in lines for n from 1
                               collect (if (memq n numbers) (concat line " again") line)))))
      (apply #'contexture-test-file "a.txt" lines)
      (revert-buffer t t)
      (contexture-live-tests--add 40 43)
      (contexture-test-settle)
      (dolist (numbers '((5 40) () (5 43 50) (40 43)))
        (apply #'contexture-test-file "a.txt" (apply changed numbers))
        (revert-buffer t t)
        (contexture-live-tests--check
         (concat (string-join (seq-subseq (apply changed numbers) 39 43) "\n") "\n")
         '(40 43))))))

(ert-deftest contexture-live-items-see-past-narrowing ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 4)
    (contexture-live-tests--line 3)
    (insert "x")
    (narrow-to-region (contexture--line-position 7) (point-max))
    (contexture-live-tests--check "xthird\nfourth\n" '(3 4))
    (should (buffer-narrowed-p))
    (should (= (contexture--line-position 1) (point-min)))))

(ert-deftest contexture-live-items-follow-edits-in-indirect-buffers ()
  (contexture-live-tests--with-file
    (with-current-buffer (clone-indirect-buffer "clone" nil)
      (setq contexture-context "a.txt")
      (contexture-live-tests--add 3 4)
      (contexture-live-tests--line 4)
      (insert "x")
      (goto-char (point-min))
      (insert "above\n")
      (contexture-live-tests--check "third\nxfourth\n" '(4 5))
      (let ((text (delete-and-extract-region (contexture--line-position 4)
                                             (contexture--line-position 6))))
        (should (eq (plist-get (contexture-live-tests--item) :state) :stale))
        (insert text)
        (contexture-live-tests--check "third\nxfourth\n" '(4 5))))))

(ert-deftest contexture-live-items-are-in-read-only-buffers ()
  (contexture-live-tests--with-file
    (set-file-modes file #o400)
    (revert-buffer t t)
    (read-only-mode 1)
    (contexture-live-tests--add 3 4)
    (let ((inhibit-read-only t))
      (goto-char (point-min))
      (insert "above\n"))
    (contexture-live-tests--check "third\nfourth\n" '(4 5))))

(ert-deftest contexture-live-text-in-other-encodings-follows-its-buffer ()
  (contexture-live-tests--with-file
    (let ((coding-system-for-write 'iso-latin-1))
      (write-region "ein\nschön\nend\n" nil file nil 'silent))
    (let ((coding-system-for-read 'iso-latin-1)) (revert-buffer t t t))
    (contexture-live-tests--add 2 2)
    (contexture-live-tests--check "schön\n")
    (should-not (equal (contexture-list--state (contexture-live-tests--item)) "unsaved"))
    (contexture-live-tests--line 2)
    (insert "sehr ")
    (save-buffer)
    (contexture-live-tests--check "sehr schön\n" '(2 2))))

(ert-deftest contexture-live-dos-line-ends-are-those-of-the-buffer ()
  (contexture-live-tests--with-file
    (set-buffer-file-coding-system 'utf-8-dos)
    (save-buffer)
    (contexture-live-tests--add 3 4)
    (kill-buffer)
    (with-current-buffer (find-file-noselect file)
      (llm-ert-wait-for (contexture-test-item-ids))
      (contexture-live-tests--line 3)
      (insert "x")
      (save-buffer)
      (contexture-live-tests--check "xthird\nfourth\n" '(3 4)))))

(ert-deftest contexture-live-items-are-renamed-with-their-buffers ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 4)
    (let ((new (expand-file-name "b.txt")))
      (rename-file file new)
      (set-visited-file-name new nil t)
      (contexture-live-tests--check "third\nfourth\n" '(3 4))
      (should (equal (contexture-test-metadata (contexture-live-tests--item) :filename)
                     (list new))))))

(ert-deftest contexture-live-items-stay-with-a-file-of-which-a-copy-is-written ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 4)
    (contexture-live-tests--line 3)
    (insert "only in the copy ")
    (contexture-live-tests--check "only in the copy third\nfourth\n")
    (write-file (expand-file-name "b.txt"))
    (contexture-live-tests--check "third\nfourth\n")
    (should-not (contexture-test-item-ids))))

(ert-deftest contexture-live-items-are-one-with-what-others-add ()
  (contexture-live-tests--with-file
    (contexture-request 'ping)
    (contexture-request 'add-file (list :path file :start-line 2 :end-line 3 :live t
                                        :manager "of another"))
    (llm-ert-wait-for (contexture-test-item-ids))
    (contexture-live-tests--line 2)
    (insert "x")
    (should (equal (plist-get (contexture-test-only-item "of another") :content)
                   "xsecond\nthird\n"))
    (contexture-request 'remove-items '(:all t :manager "of another"))
    (llm-ert-wait-for (null (contexture-test-item-ids)))))

(ert-deftest contexture-live-changes-of-which-an-answer-told-are-not-asked-about ()
  (let ((contexture-live--claimed (make-hash-table :test #'equal))
        (contexture-live-delay 600)
        asked)
    (cl-letf (((symbol-function 'contexture-live--ask-about)
               (lambda (manager) (push manager asked))))
      (contexture-live--note-claimed "m" 1)
      (contexture-live--news "m" 1 t)
      (contexture-live--news "m" 2 t)
      (contexture-live--note-claimed "m" 2)
      (should-not asked)
      (should (zerop (hash-table-count contexture-live--claimed)))
      (contexture-live--news "m" 3 t)
      (contexture-live--unclaimed '("m" . 3))
      (should (equal asked '("m")))
      (contexture-live--note-claimed "m" 4)
      (contexture-live--news "n" 4 nil)
      (should (equal asked '("n" "m"))))
    (should (zerop (hash-table-count contexture-live--claimed)))))

;;;; Edits from before the items were known

(defmacro contexture-live-tests--edited-before (ranges &rest edits)
  "Add RANGES, pairs of lines, and disconnect; run EDITS before the next call.
The last form of EDITS is what follows them."
  (declare (indent 1) (debug t))
  `(contexture-test-with-state
     (contexture-live-tests--visiting
       (pcase-dolist (`(,start . ,end) ',ranges) (contexture-live-tests--add start end))
       (contexture-disconnect)
       ,@edits)))

(defun contexture-live-tests--shown ()
  "Return the texts, first lines, last lines and states of all items, as of now."
  (sort (mapcar (lambda (item)
                  (append (contexture-test-metadata item :start-line :end-line)
                          (list (plist-get item :content) (plist-get item :state))))
                (contexture-test-items "a.txt"))
        (lambda (a b) (< (car a) (car b)))))

(ert-deftest contexture-live-edits-from-before-a-connection-are-in-the-first-answer ()
  (contexture-live-tests--edited-before ((3 . 4))
    (contexture-live-tests--line 4)
    (insert "typed ")
    (goto-char (point-min))
    (insert "above\n")
    (should (string-search "typed fourth"
                           (plist-get (contexture--rendered "a.txt") :text)))
    (contexture-live-tests--check "third\ntyped fourth\n" '(4 5))
    (should (equal (contexture-list--state (contexture-live-tests--item)) "unsaved"))
    (contexture-test-settle)
    (insert "more\n")
    (contexture-live-tests--line 5)
    (insert "now ")
    (contexture-live-tests--check "now third\ntyped fourth\n" '(5 6))))

(ert-deftest contexture-live-edits-from-before-a-connection-are-saved-and-go-on ()
  (contexture-live-tests--edited-before ((3 . 4))
    (contexture-live-tests--line 3)
    (insert "typed ")
    (contexture-live-tests--check "typed third\nfourth\n" '(3 4))
    (save-buffer)
    (contexture-live-tests--check "typed third\nfourth\n" '(3 4))
    (should (equal (contexture-list--state (contexture-live-tests--item)) "current"))
    (insert "again ")
    (contexture-live-tests--check "typed again third\nfourth\n" '(3 4))
    (revert-buffer t t)
    (contexture-live-tests--check "typed third\nfourth\n" '(3 4))))

(ert-deftest contexture-live-edits-from-before-a-connection-are-for-each-item ()
  (contexture-live-tests--edited-before ((1 . 1) (3 . 4) (6 . 6) (8 . 8))
    (goto-char (point-max))
    (insert "below\n")
    (contexture-live-tests--line 8)
    (insert "the ")
    (contexture-live-tests--line 5)
    (delete-region (point) (contexture--line-position 6))
    (contexture-live-tests--line 4)
    (insert "between\n")
    (contexture-live-tests--line 3)
    (insert "a\nb\n")
    (goto-char (point-min))
    (end-of-line)
    (insert " of all")
    (should (equal (contexture-live-tests--shown)
                   '((1 1 "first of all\n" :fresh)
                     (5 7 "third\nbetween\nfourth\n" :fresh)
                     (8 8 "sixth\n" :fresh)
                     (10 10 "the eighth\n" :fresh))))
    (should (= (length (contexture-test-item-ids)) 4))))

(ert-deftest contexture-live-edits-from-before-a-connection-are-joined-by-additions ()
  (contexture-test-with-state
    (contexture-test-visiting
        (contexture-test-file "a.el" "(defun f ()" "  1)" "" "(defun g ()" "  2)")
      (goto-char 3)
      (contexture-test-message "^Added" (contexture-add-defun))
      (contexture-test-settle)
      (contexture-disconnect)
      (contexture-live-tests--line 2)
      (insert "  (message \"more\")\n")
      (goto-char (point-min))
      (insert ";; Above.\n\n")
      (goto-char (point-min))
      (search-forward "more")
      (contexture-test-message "it was already there" (contexture-add-defun))
      (let ((item (contexture-test-only-item)))
        (should (equal (plist-get item :content)
                       "(defun f ()\n  (message \"more\")\n  1)\n"))))))

(ert-deftest contexture-live-text-deleted-before-a-connection-is-stale ()
  (contexture-live-tests--edited-before ((3 . 4) (6 . 7))
    (undo-boundary)
    (contexture-live-tests--line 3)
    (delete-region (point) (contexture--line-position 5))
    (let ((items (contexture-live-tests--shown)))
      (should (member '(3 4 "third\nfourth\n" :stale) items))
      (should (member '(4 5 "sixth\nseventh\n" :fresh) items)))
    (contexture-test-settle)
    (contexture-live-tests--undo)
    (should (equal (contexture-live-tests--shown)
                   '((3 4 "third\nfourth\n" :fresh) (6 7 "sixth\nseventh\n" :fresh))))))

(ert-deftest contexture-live-text-moved-before-a-connection-is-found ()
  (contexture-live-tests--edited-before ((3 . 4))
    (let ((text (delete-and-extract-region (contexture--line-position 3)
                                           (contexture--line-position 5))))
      (goto-char (point-max))
      (insert text)
      (contexture-live-tests--check "third\nfourth\n" '(7 8)))))

(ert-deftest contexture-live-uncertain-places-before-a-connection-are-stale-until-saved ()
  (contexture-live-tests--edited-before ((3 . 4))
    (delete-region (contexture--line-position 3) (contexture--line-position 7))
    (contexture-live-tests--line 3)
    (insert "entirely\nother\n\ntext\nis\nhere\n")
    (let ((item (contexture-live-tests--item)))
      (should (eq (plist-get item :state) :stale))
      (should (equal (plist-get item :content) "third\nfourth\n"))
      (should (equal (contexture-test-metadata item :stale)
                     '("its place in the buffer has been lost"))))
    (contexture-test-settle)
    (goto-char (point-min))
    (insert "more\n")
    (should (eq (plist-get (contexture-live-tests--item) :state) :stale))
    (goto-char (point-max))
    (insert "third\nfourth\n")
    (contexture-live-tests--check "third\nfourth\n" '(12 13))
    (save-buffer)
    (insert "x")
    (goto-char (contexture--line-position 12))
    (insert "the ")
    (contexture-live-tests--check "the third\nfourth\n" '(12 13))))

(ert-deftest contexture-live-copies-before-a-connection-are-not-taken-for-the-text ()
  (contexture-test-with-state
    (contexture-test-visiting
        (contexture-test-file "a.txt" "a" "same" "b" "c" "same" "d")
      (contexture-live-tests--add 2 2)
      (contexture-disconnect)
      (contexture-live-tests--line 2)
      (insert "not the ")
      (contexture-live-tests--check "not the same\n" '(2 2))))
  (contexture-test-with-state
    (contexture-test-visiting
        (contexture-test-file "a.txt" "a" "same" "b" "c" "same" "d")
      (contexture-live-tests--add 2 2)
      (contexture-disconnect)
      (delete-region (contexture--line-position 2) (contexture--line-position 3))
      (should (eq (plist-get (contexture-live-tests--item) :state) :stale))
      (contexture-live-tests--line 2)
      (insert "same\n")
      (contexture-live-tests--check "same\n" '(2 2)))))

(ert-deftest contexture-live-uncertain-places-of-copies-are-looked-for-after-saving ()
  (contexture-test-with-state
    (contexture-test-visiting
        (contexture-test-file "a.txt" "a" "same" "b" "c" "same" "d")
      (contexture-live-tests--add 2 2)
      (contexture-disconnect)
      (delete-region (contexture--line-position 2) (contexture--line-position 4))
      (insert "x\n\ny\n")
      (should (eq (plist-get (contexture-live-tests--item) :state) :stale))
      (contexture-test-settle)
      (delete-region (contexture--line-position 2) (contexture--line-position 5))
      (insert "same\nb\n")
      (should (eq (plist-get (contexture-live-tests--item) :state) :stale))
      (save-buffer)
      (contexture-live-tests--check "same\n" '(2 2))
      (contexture-test-settle)
      (contexture-live-tests--line 2)
      (insert "the ")
      (contexture-live-tests--check "the same\n" '(2 2)))))

(ert-deftest contexture-live-edits-before-a-connection-of-text-that-was-never-saved ()
  (contexture-live-tests--edited-before ((3 . 4))
    (contexture-live-tests--line 3)
    (insert "once ")
    (contexture-live-tests--check "once third\nfourth\n" '(3 4))
    (contexture-disconnect)
    (insert "twice ")
    ;; The lines of this text are not those of the file.
    (should (eq (plist-get (contexture-live-tests--item) :state) :stale))
    (contexture-test-settle)
    (delete-char (- (length "twice ")))
    (contexture-live-tests--check "once third\nfourth\n" '(3 4))
    (insert "again ")
    (contexture-live-tests--check "once again third\nfourth\n" '(3 4))))

(ert-deftest contexture-live-edits-before-a-connection-of-parts-of-lines ()
  (contexture-test-with-state
    (contexture-live-tests--visiting
      (contexture-add-region 3 9)
      (contexture-test-settle)
      (contexture-disconnect)
      (goto-char 4)
      (insert "-")
      (contexture-live-tests--line 2)
      (end-of-line)
      (insert "s")
      (contexture-live-tests--check "r-st\nse" '(1 2))))
  (contexture-test-with-state
    (contexture-live-tests--visiting
      (contexture-add-region 3 9)
      (contexture-test-settle)
      (contexture-disconnect)
      (goto-char 4)
      (insert "-")
      (goto-char 1)
      (insert "x")
      (should (eq (plist-get (contexture-live-tests--item) :state) :stale)))))

(ert-deftest contexture-live-edits-before-a-connection-in-narrowed-clones ()
  (contexture-live-tests--edited-before ((3 . 4))
    (with-current-buffer (clone-indirect-buffer "clone" nil)
      (contexture-live-tests--line 3)
      (insert "typed ")
      (narrow-to-region (point-min) (contexture--line-position 2)))
    (narrow-to-region (contexture--line-position 7) (point-max))
    (contexture-live-tests--check "typed third\nfourth\n" '(3 4))
    (should (buffer-narrowed-p))))

(ert-deftest contexture-live-edits-before-a-connection-read-no-remote-files ()
  (contexture-test-with-mock-method
    (contexture-test-with-state
      (contexture-test-visiting
          (concat "/mock::" (apply #'contexture-test-file "a.txt" contexture-live-tests--lines))
        (setq contexture-context "a.txt")
        (contexture-live-tests--add 3 4)
        (contexture-live-tests--add 7 7)
        (contexture-disconnect)
        (contexture-live-tests--line 3)
        (insert "typed ")
        (goto-char (point-min))
        (insert "above\n")
        (cl-letf (((symbol-function 'tramp-handle-insert-file-contents)
                   (lambda (&rest _) (ert-fail "read a remote file"))))
          ;; Text that was not edited is found.
          (let ((items (contexture-live-tests--shown)))
            (should (equal (butlast (cadr items)) '(8 8 "seventh\n")))
            (should (equal (car items) '(3 4 "third\nfourth\n" :stale)))))
        (should (equal (mapcar #'contexture-list--state (contexture-test-items "a.txt"))
                       '("changed" "remote")))
        (set-buffer-modified-p nil)))))

(ert-deftest contexture-live-items-that-others-add-follow-unsaved-edits ()
  (contexture-live-tests--with-file
    (contexture-request 'ping)
    (contexture-live-tests--line 2)
    (insert "x")
    (goto-char (point-min))
    (insert "above\n")
    (contexture-request 'add-file (list :path file :start-line 2 :end-line 3 :live t
                                        :manager "of another"))
    (llm-ert-wait-for (contexture-test-item-ids))
    (let ((item (contexture-test-only-item "of another")))
      (should (equal (plist-get item :content) "xsecond\nthird\n"))
      (should (equal (contexture-test-metadata item :start-line :end-line) '(3 4))))))

(ert-deftest contexture-live-edits-before-a-connection-keep-to-their-lines ()
  (cl-flet ((now (first last old new)
              (with-temp-buffer
                (insert (mapconcat #'identity new "\n") "\n")
                (let* ((old (vconcat old '("")))
                       (new (vconcat new '("")))
                       (bounds (contexture-live--place-now
                                (list first 0 last nil)
                                (list old new (contexture-live--matches old new)))))
                  (and bounds (split-string (buffer-substring (car bounds) (cdr bounds))
                                            "\n" t))))))
    (let ((code '("(defun a ()" "  1)" "" "(defun b ()" "  2)" "" "(defun c ()" "  3)")))
      ;; The same, a new function above, and one in its place.
      (should (equal (now 3 4 code code) '("(defun b ()" "  2)")))
      (should (equal (now 3 4 code (append '("(defun z ()" "  0)" "") code))
                     '("(defun b ()" "  2)")))
      (should (equal (now 3 4 code `(,@(seq-take code 3) "(defun new ()" "  9)" "" ,@(seq-drop code 3)))
                     '("(defun b ()" "  2)")))
      ;; More lines at its beginning and its end.
      (should (equal (now 3 4 code `(,@(seq-take code 3) "(defun b (x y)" "  \"Doc.\"" "  2)"
                                     ,@(seq-drop code 5)))
                     '("(defun b (x y)" "  \"Doc.\"" "  2)")))
      (should (equal (now 3 4 code `(,@(seq-take code 4) "  (let ((x 1))" "    (+ x 1)))"
                                     ,@(seq-drop code 5)))
                     '("(defun b ()" "  (let ((x 1))" "    (+ x 1)))")))
      ;; What is left of it.
      (should (equal (now 3 4 code `(,@(seq-take code 4) ,@(seq-drop code 5)))
                     '("(defun b ()")))
      (should (equal (now 3 4 code `(,@(seq-take code 3) ,@(seq-drop code 4)))
                     '("  2)")))
      ;; Everything is new, and there may be more.
      (should-not (now 3 4 code `(,@(seq-take code 3) "one" "two" "" "three" ,@(seq-drop code 5)))))))

;;;; Freezing

(ert-deftest contexture-live-frozen-items-stay-as-they-are ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 4)
    (contexture-live-tests--line 3)
    (contexture-test-message "^Kept a copy of today: .*a.txt:3-4"
      (call-interactively #'contexture-keep-copy))
    (llm-ert-wait-for (null (contexture-test-item-ids)))
    (insert "not sent ")
    (should (equal (plist-get (contexture-live-tests--item) :content) "third\nfourth\n"))
    (should (string-match-p "\\[as of 20" (plist-get (contexture--rendered "a.txt") :text)))
    (delete-region (point) (line-beginning-position))
    (contexture-test-message "^Following again: .*a.txt:3-4"
      (let ((current-prefix-arg '(4))) (call-interactively #'contexture-keep-copy)))
    (llm-ert-wait-for (contexture-test-item-ids))
    (insert "sent ")
    (contexture-live-tests--check "sent third\nfourth\n")))

(ert-deftest contexture-live-snapshots-say-of-when-they-are ()
  (contexture-live-tests--with-file
    (kill-new "killed")
    (contexture-test-message "^Added" (contexture-add-kill "killed"))
    (should (string-match-p "### Text \\[as of 20" (plist-get (contexture--rendered "a.txt") :text)))
    (should-not (plist-get (contexture-live-tests--item) :live))))

;;;; Repeats

(ert-deftest contexture-live-repeats-are-one-item-and-the-message-says-so ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 4)
    (contexture-live-tests--line 1)
    (insert "above\n")
    (contexture-test-message "it was already there" (contexture-live-tests--add 4 5))
    (contexture-test-message "it extends an item" (contexture-live-tests--add 5 6))
    (contexture-live-tests--check "third\nfourth\nfifth\n" '(4 6))
    (contexture-live-tests--line 4)
    (insert "x")
    (contexture-live-tests--line 6)
    (insert "y")
    (contexture-live-tests--check "xthird\nfourth\nyfifth\n" '(4 6))
    (contexture-request 'undo '(:manager "a.txt"))
    (contexture-test-settle)
    (contexture-live-tests--line 4)
    (insert "z")
    (contexture-test-only-item "a.txt")))

(ert-deftest contexture-live-undo-of-an-extension-outlives-unsaved-edits ()
  (pcase-dolist (`(,before ,after ,lines)
                 '(("above\n" "" (4 5))     ; typed before the extension
                   ("" "x" (3 4))          ; and after it
                   ("" "above\n" (4 5))))
    (contexture-live-tests--with-file
      (contexture-live-tests--add 3 4)
      (goto-char (point-min))
      (insert before)
      (contexture-test-settle)
      (contexture-live-tests--add 1 4)
      (goto-char (point-min))
      (insert after)
      (contexture-live--push)
      (contexture-request 'undo '(:manager "a.txt"))
      (contexture-test-settle)
      (contexture-live-tests--check "third\nfourth\n" lines)
      (goto-char (point-max))
      (search-backward "fourth")
      (insert "y")
      (contexture-live-tests--check "third\nyfourth\n" lines)
      (save-buffer)
      (contexture-test-settle)
      (contexture-live-tests--check "third\nyfourth\n" lines))))

(ert-deftest contexture-live-items-that-are-joined-are-one ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 1 2)
    (contexture-live-tests--add 4 5)
    (contexture-test-message "it is joined with 2 items" (contexture-live-tests--add 2 4))
    (should (= (length (contexture-test-item-ids)) 1))
    (contexture-live-tests--line 5)
    (insert "x")
    (contexture-live-tests--check "first\nsecond\nthird\nfourth\nxfifth\n" '(1 5))))

(ert-deftest contexture-live-files-cover-their-parts-and-say-so ()
  (contexture-live-tests--with-file
    (contexture-live-tests--add 3 4)
    (contexture-test-message "1 other item is sent as a part of it"
      (contexture-add-file file))
    (contexture-test-message "another item contains it" (contexture-live-tests--add 6 6))
    (should (equal (mapcar #'contexture-list--state (contexture-test-items "a.txt"))
                   '("covered" "current" "covered")))
    (should (= 2 (length (split-string (plist-get (contexture--rendered "a.txt") :text) "^third$"))))))

(ert-deftest contexture-live-covered-parts-count-no-tokens-in-totals ()
  (contexture-live-tests--with-file
    (contexture-mode)
    (contexture-live-tests--add 3 4)
    (contexture-add-file file)
    (contexture-test-settle)
    (let* ((items (contexture-test-items "a.txt"))
           (whole (plist-get (cl-find-if-not (lambda (item) (plist-get item :covered-by)) items)
                             :tokens)))
      (should (> (contexture--sum :tokens items) whole))
      (should (= (contexture--tokens-to-send items) whole))
      (should (string-search (format "2 items, %d tokens" whole)
                             (contexture-list--header "a.txt" items nil 2 nil)))
      (llm-ert-wait-for (equal (contexture--lighter) (format " ctx:2/%d" whole))))))

(ert-deftest contexture-live-covered-parts-count-in-no-message ()
  (dolist (scope '(buffer project))
    (contexture-live-tests--with-file
      (let* ((contexture-add-to scope)
             (name (contexture--label (contexture-adding-context)))
             (size (lambda (items)
                     (format "(%d items, %d tokens)" items
                             (plist-get (cl-find-if-not
                                         (lambda (item) (plist-get item :covered-by))
                                         (contexture-test-items))
                                        :tokens)))))
        (should (stringp name))
        (contexture-live-tests--add 3 4)
        (contexture-test-message "(2 items, [0-9]+ tokens); 1 other item"
          (contexture-add-buffer))
        (let ((whole (funcall size 2)))
          (contexture-test-message (regexp-quote whole) (contexture-add-buffer))
          (contexture-menu--fetch)
          (should (string-suffix-p (substring whole 1 -1) (contexture-menu--heading)))
          (should (string-search (substring whole 1 -1) (contexture-gptel--describe)))
          (contexture-test-message (regexp-quote (funcall size 3))
            (contexture-live-tests--add 6 6))
          (contexture-test-message (regexp-quote whole) (contexture-undo))
          (contexture-test-message (regexp-quote (funcall size 3)) (contexture-redo))
          (contexture-undo)
          (contexture-test-settle)
          (should (string-search (substring whole 1 -1)
                                 (contexture-sets--manager-text
                                  (contexture--entry :manager (contexture-adding-context)
                                                     (contexture--filled-contexts))))))))))

;;;; Another editor

(ert-deftest contexture-live-another-editor-has-other-text ()
  (contexture-test-with-state
   (contexture-live-tests--visiting
    (let ((reason "another editor has other unsaved text")
          other)
      (contexture-mode)
      (contexture-live-tests--add 3 4)
      (contexture-test-as-other-emacs other
        (contexture-request 'subscribe '(:topics (:text-wanted)))
        (contexture-request
         'update-items
         '(:items ((:id "ctx-1" :manager "a.txt" :content "theirs\nfourth\n"
                    :metadata (:unsaved t :modified t :start-line 6 :end-line 7))))))
      (unwind-protect
          (let ((item (contexture-live-tests--item)))
            (should (equal (plist-get item :content) "third\nfourth\n"))
            (should (equal (contexture-test-metadata item :start-line :end-line :stale)
                           (list 3 4 reason)))
            (should (string-match-p "\\`changed" (contexture-list--state item)))
            (contexture-copy (contexture-current-context))
            (should (string-search "third\nfourth\n" (current-kill 0)))
            (should (string-search reason (current-kill 0)))
            ;; Its mark stays where this buffer has the text.
            (contexture-marks--reverted)
            (llm-ert-wait-for
                (string-search "changed" (or (get-char-property (contexture--line-position 3)
                                                              'help-echo)
                                           "")))
            (dolist (line '(2 5 6 7))
              (should-not (get-char-property (contexture--line-position line) 'contexture-mark)))
            ;; Marked again, the message says so.
            (contexture-test-message (concat "changed: " reason)
              (contexture-live-tests--add 3 4))
            ;; Edits here do not take on the other's text.
            (goto-char (point-min))
            (insert "new\n")
            (let ((item (contexture-live-tests--item)))
              (should (equal (plist-get item :content) "third\nfourth\n"))
              (should (equal (contexture-test-metadata item :start-line :stale)
                             (list 4 reason))))
            (let ((save-silently t)) (save-buffer))
            (let ((item (contexture-live-tests--item)))
              (should (equal (contexture-test-metadata item :start-line :unsaved :stale)
                             (list 4 nil reason)))))
        (contexture-test-as-other-emacs other (contexture-disconnect)))
      (llm-ert-wait-for
          (eq :fresh (plist-get (contexture-live-tests--item) :state)))
      (contexture-live-tests--check "third\nfourth\n" '(4 5))))))

(ert-deftest contexture-live-the-mode-line-counts-what-this-editor-sends ()
  (contexture-test-with-state
   (contexture-live-tests--visiting
    (let (other)
      (contexture-mode)
      (contexture-live-tests--add 3 4)
      (goto-char (contexture--line-position 3))
      (insert "mine ")
      (let* ((mine (plist-get (contexture-live-tests--item) :tokens))
             (here (contexture-current-connection))
             (fetch (symbol-function 'contexture-marks--fetch)))
        ;; The other one has no buffers, and so no marks and no mode lines.
        (cl-letf (((symbol-function 'contexture-marks--fetch)
                   (lambda (&rest args)
                     (when (eq contexture--connection here) (apply fetch args)))))
          (contexture-test-as-other-emacs other
            (contexture-request 'subscribe '(:topics (:text-wanted)))
            (contexture-request
             'update-items
             `(:items ((:id "ctx-1" :manager "a.txt"
                        :content ,(apply #'concat (make-list 50 "theirs is longer\n"))
                        :metadata (:unsaved t :modified t :start-line 3 :end-line 52))))))
          (unwind-protect
              (progn
                (llm-ert-wait-for (> (nth 1 (gethash "a.txt" contexture--totals)) (* 10 mine)))
                (llm-ert-wait-for
                    (string-match-p (format "\\` ctx:1/%d\\'" mine)
                                    (car (ensure-list (contexture--lighter)))))
                (should (= (plist-get (contexture-live-tests--item) :tokens) mine)))
            (contexture-test-as-other-emacs other (contexture-disconnect)))))
      (contexture-test-settle)))))

;;;; What is shown

(ert-deftest contexture-live-text-that-is-only-in-the-file-is-stale-beside-edits ()
  (contexture-test-with-state
   (contexture-live-tests--visiting
    (let (other)
      (contexture-test-as-other-emacs other
        (contexture-request 'subscribe '(:topics (:text-wanted)))
        (contexture-request
         'add-item
         (list :manager "a.txt" :type :code :content "third\ntheirs\n" :live t
               :metadata (list :filename file :start-line 3 :end-line 4 :origin :region
                               :unsaved t :modified t)))
        (contexture-disconnect))
      (contexture-request 'ping)
      (contexture-test-settle)
      (goto-char (point-min))
      (insert "new\n")
      ;; Another program saves what the other editor had.
      (let ((text (string-replace "fourth" "theirs" (buffer-string))))
        (with-temp-buffer
          (insert (string-remove-prefix "new\n" text))
          (call-process-region (point-min) (point-max) "tee" nil nil nil file)))
      (should (eq (plist-get (contexture-live-tests--item) :state) :stale))))))

(ert-deftest contexture-live-stale-items-have-their-date-and-are-counted ()
  (contexture-live-tests--with-file
    (contexture-mode)
    (contexture-live-tests--add 3 4)
    (kill-buffer)
    (contexture-test-file "a.txt" "nothing of it")
    (with-current-buffer (find-file-noselect file)
      (contexture-mode)
      (contexture-test-settle)
      (let ((item (contexture-live-tests--item)))
        (should (equal (contexture-list--state item) "changed"))
        (should (string-match-p "\\`changed 20[0-9-]+\\'"
                                (get-text-property
                                 0 'display
                                 (aref (cadr (contexture-list--row item 0)) 6)))))
      (llm-ert-wait-for
          (member " 1 changed" (ensure-list (contexture--lighter)))))))

(ert-deftest contexture-live-what-was-marked-is-added-if-its-buffer-is-killed-at-once ()
  (contexture-test-with-state
    (setq contexture-add-to 'project)
    (pcase-dolist (`(,name . ,add) `(("r.py" . ,(lambda () (contexture-add-region 1 7)))
                                     ("b.py" . contexture-add-buffer)
                                     ("f.py" . ,(lambda () (contexture-add-file buffer-file-name)))))
      (let ((file (contexture-test-file name "a = 1" "b = 2")))
        (with-current-buffer (find-file-noselect file t)
          (funcall add)
          (kill-buffer))
        (with-current-buffer (find-file-noselect file t)
          (llm-ert-wait-for
              (member file (mapcar (lambda (item)
                                     (plist-get (plist-get item :metadata) :filename))
                                   (contexture-test-items))))
          (kill-buffer))))))

(provide 'contexture-live-tests)
;;; contexture-live-tests.el ends here
